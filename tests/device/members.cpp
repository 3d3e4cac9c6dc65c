// One function a kind. Names of members say what is special about them.
#include "tests/device/members.h"
#include "tests/reference/numbers.h"
#include <numeric>

namespace gdn::device {

namespace {

using reference::Recipe;
using Gates = Recipe::Gates;
using Beta = Recipe::Beta;
using Offsets = Storage::Offsets;
using Lengths = std::vector<int64_t>;

class List {
public:
  explicit List(const Config &config) : config(config) {}

  // A member like the base of its kind; the caller changes what it is about.
  Member &add(const char *kind, std::string name, Lengths lengths, uint32_t keyHeads = 1, uint32_t valueHeads = 2) {
    Member &member = members.emplace_back();
    member.kind = kind;
    member.name = std::move(name);
    member.recipe.keyHeads = keyHeads;
    member.recipe.valueHeads = valueHeads;
    member.recipe.keyDim = config.keyDim;
    member.recipe.valueDim = config.valueDim;
    member.recipe.io = config.io;
    member.recipe.lengths = std::move(lengths);
    // Both layouts and both widths of offsets turn up in every kind.
    member.storage.valueFirst = config.layouts[members.size() % config.layouts.size()];
    member.storage.offsets = members.size() / 2 % 2 ? Offsets::Int32 : Offsets::Int64;
    return member;
  }
  bool half() const { return config.io == ElementType::F16; }

  const Config &config;
  std::vector<Member> members;
};

void lengths(List &list) {
  for (int64_t length : {0, 1, 15, 33, 63, 64, 65, 127, 1025, 8191})
    list.add("lengths", "T=" + std::to_string(length), {length});
  list.add("lengths", "T=65536", {65536}, 2, 4);
  list.add("lengths", "T=262144", {262144}, 1, 1);
  list.add("lengths", "T=262144, no decay", {262144}, 1, 1).recipe.gates = Gates::Constant;
}

void packed(List &list) {
  list.add("packed", "empty first", {0, 0, 65, 3});
  list.add("packed", "empty between", {64, 0, 0, 1, 0, 130});
  list.add("packed", "empty last", {5, 70, 0, 0, 0});
  list.add("packed", "all empty", {0, 0, 0});
  list.add("packed", "8192 of one token", Lengths(8192, 1), 1, 1);
  Lengths uneven(90, 7);
  uneven.insert(uneven.begin(), 500);
  list.add("packed", "500 and ninety of 7", uneven);
  Lengths residues(64);
  std::iota(residues.begin(), residues.end(), 0);
  for (size_t i = 0; i < residues.size(); ++i)
    residues[i] += 64 * int64_t(i % 3);
  list.add("packed", "every residue of 64", residues, 1, 1);
  Member &many = list.add("packed", "70000 of one token, no states", Lengths(70000, 1), 1, 2);
  many.recipe.hasState = many.storage.wantsState = false;
  for (int64_t tail : {1, 63, 64, 5000})
    list.add("packed", "tail of " + std::to_string(tail), {30, 65}).recipe.tail = tail;
  list.add("packed", "only a tail", {0, 0}).recipe.tail = 200;
  list.add("packed", "updated in place", {65, 0, 64, 1, 200}).check = Check::Update;
  list.add("packed", "int32 offsets", {3, 64, 70}).storage.offsets = Offsets::Int32;
  list.add("packed", "int64 offsets", {3, 64, 70}).storage.offsets = Offsets::Int64;
}

void dense(List &list) {
  for (auto [batch, length] : {std::pair{1, 100}, {3, 65}, {2, 128}, {4, 1}, {5, 63}, {2, 0}}) {
    Member &member =
        list.add("dense", "B=" + std::to_string(batch) + " T=" + std::to_string(length), Lengths(batch, length));
    member.storage.offsets = Offsets::Dense;
  }
}

void heads(List &list) {
  for (auto [keyHeads, valueHeads] :
       {std::pair{1, 1}, {1, 2}, {2, 2}, {1, 3}, {2, 6}, {2, 8}, {1, 8}, {8, 24}, {16, 48}, {16, 64}, {30, 30}})
    list.add("heads", std::to_string(keyHeads) + "/" + std::to_string(valueHeads), {70}, keyHeads, valueHeads);
}

void gates(List &list) {
  auto add = [&](std::string name, Gates gates, float gate, Lengths lengths = {200, 33}) -> Member & {
    Member &member = list.add("gates", std::move(name), std::move(lengths), 1, 4);
    member.recipe.gates = gates;
    member.recipe.gate = gate;
    return member;
  };
  add("0 everywhere", Gates::Constant, 0);
  add("0 on a quarter, -3 a chunk", Gates::Chunk, -3, {1025});
  add("exactly 0 inside a decay", Gates::ZeroRuns, 0.5f);
  add("exactly 0 inside a strong decay", Gates::ZeroRuns, 30);
  add("-100 a token", Gates::Constant, -100);
  add("-1e4 a token", Gates::Constant, -1e4f);
  add("-softplus, A=1e-12", Gates::Softplus, 1e-12f);
  add("-softplus, A=0.5", Gates::Softplus, 0.5f);
  add("-softplus, A=16", Gates::Softplus, 16);
  add("last row of a partial chunk", Gates::LastToken, -3, {65, 33, 1, 127});
  add("last row of a partial chunk, -200", Gates::LastToken, -200, {65, 33, 1, 127});
  for (ElementType type : {ElementType::BF16, ElementType::F16}) {
    Member &member = add(type == ElementType::BF16 ? "bf16" : "f16", Gates::Mix, 0);
    member.recipe.gateType = member.storage.gates = type;
  }
}

void betas(List &list) {
  auto add = [&](std::string name, Beta beta, float strength = 1) -> Member & {
    Member &member = list.add("beta", std::move(name), {200, 33}, 1, 4);
    member.recipe.beta = beta;
    member.recipe.strength = strength;
    return member;
  };
  add("0", Beta::Constant, 0);
  add("0, no state", Beta::Constant, 0).recipe.hasState = false;
  add("1", Beta::Constant, 1);
  add("2", Beta::Constant, 2);
  add("0 and 1 in turn", Beta::Alternate);
  add("sigmoid of +-20", Beta::Saturated);
  add("in [0, 2]", Beta::Uniform, 2);
  Member &constant = add("1.9, correlation 0.9", Beta::Constant, 1.9f);
  constant.recipe.correlation = 0.9f;
  constant.recipe.gates = Gates::Constant;
}

void keys(List &list) {
  for (float correlation : {0.0f, 0.5f, 0.9f, 0.99f, 0.9999f, 1.0f})
    for (bool strong : {false, true}) {
      std::string name = correlation == 1 ? "identical" : "correlation " + std::to_string(correlation).substr(0, 6);
      Member &member = list.add("keys", name + (strong ? ", beta 1, no decay" : ""), {330}, 1, 4);
      member.recipe.correlation = correlation;
      if (strong) {
        member.recipe.gates = Gates::Constant;
        member.recipe.beta = Beta::Constant;
      }
    }
  list.add("keys", "one-hot", {200}).recipe.oneHot = true;
  list.add("keys", "zero rows", {200}).recipe.zeroRowEvery = 3;
  Member &large = list.add("keys", "norm 10, beta |k|^2 <= 2", {200});
  large.recipe.keyNorm = 10;
  large.recipe.beta = Beta::Uniform;
  large.recipe.strength = 0.02f;
  if (!list.half()) { // fp16 cannot hold the outputs
    Member &wild = list.add("keys", "norm 10, any beta", {16});
    wild.recipe.keyNorm = 10;
    wild.check = Check::Finite;
  }
}

void values(List &list) {
  Member &zeros = list.add("values", "zeros", {100});
  zeros.recipe.valueScale = 0;
  Member &nothing = list.add("values", "zeros, no state", {100});
  nothing.recipe.valueScale = 0;
  nothing.recipe.hasState = false;
  list.add("values", "large", {200}).recipe.valueScale = list.half() ? 3e3f : 1e4f; // fp16 ends at 65504
  Member &denormal = list.add("values", "denormal", {100});
  denormal.recipe.valueScale = list.half() ? 1e-5f : 1e-39f;
  denormal.recipe.stateScale = 0;
  list.add("values", "views of one projection", {65, 30}, 2, 4).storage.projection = true;
  Member &dense = list.add("values", "views of one projection, dense", {65, 65}, 2, 4);
  dense.storage.projection = true;
  dense.storage.offsets = Offsets::Dense;
  for (float scale : {0.0f, 1.0f, -2.0f})
    list.add("values", "scale " + std::to_string(int(scale)), {70}).recipe.scale = scale;
}

void states(List &list) {
  list.add("state", "none is zeros", {65, 0, 64}).check = Check::NoState;
  Member &none = list.add("state", "none", {65, 0, 64});
  none.recipe.hasState = false;
  list.add("state", "final not asked for", {65, 64}).storage.wantsState = false;
  for (bool valueFirst : list.config.layouts)
    for (ElementType type : {ElementType::F32, ElementType::BF16, ElementType::F16}) {
      const char *typeName = type == ElementType::F32 ? "f32" : type == ElementType::BF16 ? "bf16" : "f16";
      std::string layout = valueFirst ? ", V first" : ", K first";
      for (bool inPlace : {false, true}) {
        Member &member =
            list.add("state", (inPlace ? "in place, " : "") + std::string(typeName) + layout, {65, 0, 130}, 1, 3);
        member.storage.valueFirst = valueFirst;
        member.recipe.stateType = member.storage.initialState = member.storage.finalState = type;
        member.storage.inPlace = inPlace;
      }
    }
  Member &mixed = list.add("state", "f32 in, bf16 out", {65, 1});
  mixed.storage.finalState = ElementType::BF16;
  list.add("state", "apart in memory", {65, 0, 1}).storage.stateGaps = true;
  list.add("state", "denormal", {0, 33, 0}).recipe.stateScale = 1e-39f;
  list.add("state", "large entries", {200}).recipe.stateScale = list.half() ? 1e3f : 1e6f;
}

// States in slots of pools.
void pools(List &list) {
  auto add = [&](std::string name, Lengths lengths, bool reads, bool writes) -> Storage & {
    Storage &storage = list.add("pools", std::move(name), std::move(lengths), 1, 3).storage;
    storage.reads = reads, storage.writes = writes;
    storage.stateGaps = list.members.size() % 2;
    return storage;
  };
  const Lengths some = {65, 0, 130, 64, 7, 0, 1};
  for (bool holes : {false, true}) {
    std::string with = holes ? ", some outside" : "";
    add("read" + with, some, true, false).holes = holes;
    add("written" + with, some, false, true).holes = holes;
    add("read and written" + with, some, true, true).holes = holes;
    for (bool writes : {false, true}) {
      Storage &storage = add((writes ? "in one pool" : "in place") + with, some, true, writes);
      storage.holes = storage.inPlace = true;
    }
  }
  for (bool valueFirst : list.config.layouts)
    for (ElementType type : {ElementType::BF16, ElementType::F16}) {
      Storage &storage =
          add(std::string("in place, ") + reference::name(type) + (valueFirst ? ", V first" : ", K first"), some, true,
              false);
      list.members.back().recipe.stateType = storage.initialState = storage.finalState = type;
      storage.valueFirst = valueFirst, storage.inPlace = true;
    }
  add("not written", some, true, false).wantsState = false;
  add("zeros at first", some, false, true);
  list.members.back().recipe.hasState = false;
  add("dense", {70, 70, 70}, true, true).offsets = Offsets::Dense;
  for (bool writes : {false, true}) {
    Storage &storage =
        add(std::string("updated ") + (writes ? "in one pool" : "in place"), {65, 0, 64, 1, 200}, true, writes);
    storage.inPlace = storage.holes = true;
    list.members.back().check = Check::Update;
  }
}

// States between chunks.
void checkpoints(List &list) {
  if (!list.config.checkpoints)
    return;
  const Lengths some = {65, 0, 192, 7};
  auto add = [&](std::string name, int64_t every, bool before, Lengths lengths) -> Member & {
    Member &member = list.add("checkpoints", (before ? "before" : "after") + std::move(name), std::move(lengths), 1, 3);
    member.recipe.every = every, member.recipe.before = before;
    member.storage.stateGaps = list.members.size() % 2;
    return member;
  };
  for (bool before : {false, true}) {
    for (int64_t every : {64, 128, 192})
      add(" " + std::to_string(every), every, before, some);
    for (bool valueFirst : list.config.layouts)
      for (ElementType type : {ElementType::F32, ElementType::BF16, ElementType::F16}) {
        std::string name = std::string(", ") + reference::name(type) + (valueFirst ? ", V first" : ", K first");
        Storage &storage = add(name, 64, before, {130, 64}).storage;
        storage.checkpoints = type, storage.valueFirst = valueFirst;
      }
    add(", some outside", 64, before, some).storage.holes = true;
    add(", a row too few", 64, before, {130, 65, 1}).storage.cramped = true;
    add(", one after the other", 64, before, some).storage.follow = true;
    Storage &dense = add(", dense", 128, before, {200, 200}).storage;
    dense.offsets = Offsets::Dense, dense.follow = true;
    Storage &pool = add(", states in a pool", 64, before, some).storage;
    pool.reads = pool.inPlace = pool.holes = true;
    Member &alone = add(", no states", 64, before, some);
    alone.recipe.hasState = alone.storage.wantsState = false;
    add(", every split", 64, before, {130, 1, 0, 64}).check = Check::Splits;
    if (list.config.normalises)
      add(", normalised", 64, before, some).recipe.normalise = true;
    for (bool exact : {true, false})
      for (Check check : {Check::Cuts, Check::Repeat}) {
        std::string name = std::string(exact ? ", exact" : ", auto") + (check == Check::Repeat ? ", run to run" : "");
        Member &member = add(name, check == Check::Cuts ? 64 : 128, before, {1500});
        member.recipe.valueHeads = 1;
        member.recipe.gates = Gates::Constant, member.recipe.gate = exact ? 0 : -0.3f;
        member.storage.cuts = exact ? GDN_CUT_EXACT : GDN_CUT_AUTO | GDN_KEYS_NORMALISED;
        member.check = check;
      }
  }
}

void invariance(List &list) {
  list.add("invariance", "run to run", {130, 1, 0, 65}, 2, 4).check = Check::Repeat;
  list.add("invariance", "run to run, large", {3000, 1, 0, 65, 64, 500}, 16, 64).check = Check::Repeat;
  list.add("invariance", "graph, other lengths", {65, 0, 64, 1, 200}).check = Check::Graph;
  Member &often = list.add("invariance", "graph, 200 replays", {700, 65, 0, 64, 1, 200});
  often.check = Check::Graph;
  often.turns = 200;
  often.storage.cuts = GDN_CUT_AUTO | GDN_KEYS_NORMALISED;
  for (uint32_t cuts : {uint32_t(GDN_CUT_OFF), uint32_t(GDN_CUT_INVARIANT | GDN_KEYS_NORMALISED)})
    for (bool isLong : {false, true}) {
      Lengths lengths = isLong ? Lengths{5000, 0, 65, 1500, 64, 1, 3000} : Lengths{65, 0, 130, 1};
      Member &member = list.add("invariance", "", std::move(lengths), isLong ? 4 : 2, isLong ? 8 : 4);
      member.name = std::string(cuts == GDN_CUT_OFF ? "uncut" : "invariant") + ", apart" + (isLong ? ", long" : "");
      member.check = Check::Apart;
      member.storage.cuts = cuts;
    }
  list.add("invariance", "every split", {130, 1, 0, 64}, 1, 3).check = Check::Splits;
}

// Work that is cut into pieces: by transition where nothing decays, by warm-up elsewhere, by hand-over where tiles are
// many.
void cuts(List &list) {
  struct Way {
    const char *name;
    uint32_t flags;
  } ways[] = {{"exact", GDN_CUT_EXACT},
              {"auto", GDN_CUT_AUTO | GDN_KEYS_NORMALISED},
              {"invariant", GDN_CUT_INVARIANT | GDN_KEYS_NORMALISED}};
  Lengths uneven(70, 6);
  uneven.insert(uneven.begin(), 512);
  for (const Way &way : ways) {
    auto add = [&](std::string name, Lengths lengths, uint32_t keyHeads, uint32_t valueHeads) -> Member & {
      Member &member = list.add("cuts", std::string(way.name) + ", " + name, std::move(lengths), keyHeads, valueHeads);
      member.storage.cuts = way.flags;
      member.check = Check::Cuts;
      if (member.chunks() <= 24) // which the runtime would leave uncut, for V split over blocks
        member.storage.split = list.config.splits.front();
      return member;
    };
    add("one head", {1500}, 1, 1);
    add("one head, V split", {1500}, 1, 1).storage.split = list.config.splits.back();
    add("no decay", {1500}, 1, 1).recipe.gates = Gates::Constant;
    Member &keys = add("no decay, correlation 0.9, beta 1", {1500}, 1, 1);
    keys.recipe.gates = Gates::Constant;
    keys.recipe.correlation = 0.9f;
    keys.recipe.beta = Beta::Constant;
    Member &large = add("no decay, large entries", {700}, 1, 2);
    large.recipe.gates = Gates::Constant;
    large.recipe.stateScale = 100;
    add("decay", {700}, 1, 2).recipe.gates = Gates::Decay;
    add("exactly 0 inside a decay", {700}, 1, 2).recipe.gates = Gates::ZeroRuns;
    // A later piece that starts in zeros may be through before the first has read the state that it overwrites.
    for (bool pool : {false, true}) {
      Member &member = add(pool ? "in a pool" : "in place", {1500}, 1, 1);
      member.recipe.gates = Gates::Constant;
      member.recipe.gate = -0.3f;
      member.storage.inPlace = true;
      member.storage.reads = pool;
    }
    add("mixed heads", {4100}, 2, 8);
    add("every length", {1, 7, 63, 64, 65, 0, 1000, 4096}, 1, 4);
    add("512 and seventy of 6", uneven, 2, 4);
    add("equal sequences for half the blocks", Lengths(16, 2048), 2, 4); // left to tiles of half the columns
    add("equal ones for four", {1664, 1664}, 1, 1);                      // the same on four SMs
    add("unequal ones for four", {3264, 64}, 1, 1);
    add("unequal ones", {9000, 1, 2000, 64, 700, 300, 0, 40, 5000, 1000, 12000, 8, 9, 10, 2000, 600}, 2, 4);
    add("8 heads of 8192", {8192}, 2, 8);
    add("8 heads of 32768", {32768}, 2, 8);
    add("long", {65536}, 2, 4);
    add("262144, no decay", {262144}, 1, 2).recipe.gates = Gates::Constant;
    add("run to run", {3000, 0, 700}, 2, 4).check = Check::Repeat;
    add("other lengths", {3000, 64, 700}, 2, 4).check = Check::Graph;
  }
}

// Log decays and write strengths from what callers hold.
void fusions(List &list) {
  auto add = [&](std::string name, Lengths lengths = {200, 33}) -> Recipe & {
    return list.add("fusions", std::move(name), std::move(lengths), 1, 4).recipe;
  };
  auto typed = [&](ElementType type) {
    list.members.back().recipe.gateType = list.members.back().storage.gates = type;
  };
  add("beta from logits").logits = true;
  auto logit = [&](std::string name, Beta beta, float value = 0) {
    Recipe &recipe = add("beta from logits " + std::move(name));
    recipe.logits = true, recipe.beta = beta, recipe.strength = value;
  };
  logit("of +-20", Beta::Saturated);
  logit("in [0, 8]", Beta::Uniform, 8);
  logit("of -60", Beta::Constant, -60);
  logit("of -1e4", Beta::Constant, -1e4f);
  logit("of 1e4", Beta::Constant, 1e4f);
  Recipe &both = add("2 sigmoid(logits)");
  both.logits = both.doubled = true;
  Recipe &doubled = add("beta doubled");
  doubled.doubled = true, doubled.beta = Beta::Uniform, doubled.strength = 0.5f;
  for (ElementType type : {ElementType::BF16, ElementType::F16}) {
    add(type == ElementType::BF16 ? "beta from bf16 logits" : "beta from f16 logits").logits = true;
    typed(type);
  }

  auto raw = [&](std::string name, float rate, float center, float spread, bool biased = false) {
    Recipe &recipe = add("raw gate" + std::move(name));
    recipe.gateForm = Recipe::GateForm::Raw;
    recipe.rate = rate, recipe.center = center, recipe.spread = spread, recipe.biased = biased;
  };
  raw("", 0.5f, 0, 1);
  raw(", biased", 0.5f, -3, 2, true);
  raw(", A=16", 16, 0, 4, true);
  raw(", A=1e-12", 1e-12f, 0, 4);
  raw(" around -20", 1e6f, -20, 1);
  raw(" around 25", 1e-3f, 25, 4, true);
  raw(" of -1e4", 1, -1e4f, 0);
  raw(" of 1e4", 1, 1e4f, 0);
  raw(" and logits in bf16", 0.5f, 0, 1, true);
  list.members.back().recipe.logits = true;
  typed(ElementType::BF16);
  raw(" in f16", 0.5f, 0, 1, true);
  typed(ElementType::F16);

  auto decay = [&](std::string name, Gates gates, float gate) {
    Recipe &recipe = add("decays " + std::move(name));
    recipe.gateForm = Recipe::GateForm::Decay;
    recipe.gates = gates, recipe.gate = gate;
  };
  decay("near 1", Gates::Mix, 0);
  decay("of 1", Gates::Constant, 0);
  decay("of 1 - 1e-4", Gates::Constant, -1e-4f);
  decay("of exp(-30)", Gates::Constant, -30);
  decay("of 0", Gates::Constant, -1e4f);
  decay("of 0, once", Gates::LastToken, -1e4f);
  decay("with A=16", Gates::Softplus, 16);
  decay("in bf16", Gates::Mix, 0);
  typed(ElementType::BF16);
}

// Rows of q and k that the kernel divides by their norms.
void norms(List &list) {
  if (!list.config.normalises)
    return;
  auto add = [&](std::string name, float keyNorm = 1, float queryNorm = 1, Lengths lengths = {200, 33}) -> Recipe & {
    Recipe &recipe = list.add("norms", std::move(name), std::move(lengths), 2, 4).recipe;
    recipe.normalise = true;
    recipe.keyNorm = keyNorm, recipe.queryNorm = queryNorm;
    return recipe;
  };
  add("1");
  add("10 and 0.1", 10, 0.1f);
  add("0.1 and 10", 0.1f, 10);
  add("11, one long sequence", 11, 11, {2100});
  add("apart by up to 2^6", 4, 4).normSpread = 3;
  add("zero rows", 3, 3).zeroRowEvery = 3;
  add("all zero", 3, 3).zeroRowEvery = 1;
  add("as small as epsilon's root", 1e-3f, 1e-3f);
  if (!list.half()) {
    add("1000", 1000, 1000);
    add("1e-5", 1e-5f, 1e-5f).hasState = false;
  }
  for (float correlation : {0.9f, 0.99f, 1.0f}) {
    Recipe &recipe = add("correlation " + std::to_string(correlation).substr(0, 4) + ", beta 1, no decay", 8, 8, {330});
    recipe.correlation = correlation;
    recipe.gates = Gates::Constant;
    recipe.beta = Beta::Constant;
  }
  Recipe &strong = add("strong decay", 5, 5);
  strong.gates = Gates::Softplus, strong.gate = 16;
  add("one-hot", 7, 7).oneHot = true;
  Recipe &layer = add("as a layer calls it", 6, 6);
  layer.normSpread = 1;
  layer.gateForm = Recipe::GateForm::Raw, layer.biased = true, layer.rate = 0.5f;
  layer.logits = true;
  list.members.back().storage.projection = true;
  add("run to run", 3, 3, {130, 1, 0, 65});
  list.members.back().check = Check::Repeat;
  add("updated in place", 3, 3, {65, 0, 64, 1, 200});
  list.members.back().check = Check::Update;
  add("every split", 3, 3, {130, 1, 0, 64});
  list.members.back().check = Check::Splits;
}

// The reference on the GPU reads plain tensors alone, and K up to 128.
void sizes(List &list) {
  auto add = [&](std::string name, Lengths lengths, uint32_t keyHeads, uint32_t valueHeads, Check check) -> Member & {
    Member &member = list.add("sizes", std::move(name), std::move(lengths), keyHeads, valueHeads);
    member.check = check;
    member.storage.valueFirst = false;
    member.storage.offsets = Offsets::Int64;
    return member;
  };
  add("reference on the GPU", {65, 0, 1, 200}, 2, 4, Check::Reference);
  int64_t tokens = (int64_t(1) << 31) / (64 * list.config.valueDim) + 4097;
  add("T HV V past 2^31", {100001, tokens - 100001}, 8, 64, Check::Large).recipe.hasState = false;
  int64_t sequences = (int64_t(1) << 31) / (2 * int64_t(list.config.keyDim) * list.config.valueDim) + 401;
  add("N HV K V past 2^31", Lengths(sequences, 1), 1, 2, Check::Large);
}

} // namespace

int64_t Member::chunks() const {
  int64_t sum = 0;
  for (int64_t length : recipe.lengths)
    sum += (length + 63) / 64;
  return sum * recipe.valueHeads;
}

std::vector<Member> members(const Config &config) {
  List list(config);
  for (auto *kind : {lengths, packed, dense, heads, gates, betas, keys, values, states, pools, checkpoints, invariance,
                     fusions, norms, cuts})
    kind(list);
  bool kFirst = false;
  for (bool valueFirst : config.layouts)
    kFirst |= !valueFirst;
  if (kFirst && config.keyDim <= 128)
    sizes(list);
  return std::move(list.members);
}

} // namespace gdn::device
