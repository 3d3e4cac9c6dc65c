// What runs: warps of a block, its shared memory and barriers, and the work in flight of its asynchronous proxy.
#pragma once
#include "Emulator.h"
#include "Program.h"
#include <deque>
#include <random>
#include <utility>

namespace gdn::emu {

struct Block;
class Detector;
struct Ticket;

enum class Access : uint8_t { Read, Write, Atomic };

struct alignas(64) TensorMap { // the 128 bytes
  uint32_t magic;
  uint8_t rank, elementBytes, swizzle, elementType;
  uint64_t base;
  uint64_t dims[5], strides[4];
  uint16_t box[5];
  uint8_t elementStrides[5];
  uint8_t fillNan;
  uint8_t pad[8];
};
static_assert(sizeof(TensorMap) == 128);

// Warps that arrived at a barrier, a bit each: in this phase, and in those before.
struct Arrivals {
  uint32_t now = 0, before = 0;
  void nextPhase() { before |= std::exchange(now, 0); }
};

struct NamedBarrier {
  uint32_t expected = 0, arrived = 0; // threads
  std::vector<Warp *> waiting;
  Arrivals who;
};

struct Mbarrier {
  uint32_t address = 0;
  uint32_t expected = 0, pending = 0;
  int64_t bytes = 0; // transactions outstanding
  uint64_t phase = 0;
  bool valid = false;
  Arrivals who = {};
};

// A piece of work that the asynchronous proxy owns: it is done once, at some time between issue and wait.
struct AsyncWork {
  enum class Group : uint8_t { None, Wgmma, Bulk, Copy } group; // what a wait names; None: completes on an mbarrier
  Warp *warp;
  uint8_t lane;
  bool sourceRead = false; // a bulk store: shared memory has been read, global memory is not yet written
  uint64_t number;         // of its group
  const Inst *inst;
  void (*perform)(Block &, AsyncWork &);
  uint32_t shared = 0, barrier = 0, bytes = 0;
  uint64_t global = 0, operands[2] = {}; // descriptors
  uint16_t multicast = 0;                // ranks of the blocks that receive it; 0: this one
  uint8_t reduction = 0;                 // 0: a copy
  bool accumulate = false;               // a matrix product is added to what its registers hold
  TensorMap map;
  int32_t at[5] = {};
  std::vector<uint8_t> data;
  std::shared_ptr<Ticket> ticket; // where detectors are on
};

struct Fragment {
  uint32_t pc, mask;
  bool waits; // at an instruction that all lanes of the warp must reach
};

enum class Status : uint8_t { Ready, Barrier, Mbarrier, ClusterBarrier, Turn, Done };

struct Warp {
  uint8_t *area[3] = {};
  uint32_t exec = 0;   // lanes that execute the instruction
  uint32_t active = 0; // lanes at pc
  uint32_t live = 0;   // lanes that have not exited
  uint32_t pc = 0;
  uint32_t mergeAt = ~0u; // lowest pc of a parked fragment
  uint32_t carry = 0;     // of add.cc, a bit a lane
  bool stop = false;
  Status status = Status::Ready;
  unsigned index = 0;
  Block *block = nullptr;
  const Program *program = nullptr;
  const Machine::Range *lastRange = nullptr;
  uint64_t executed = 0;

  // What it waits for.
  uint32_t waitAddress = 0; // of an mbarrier, or a named barrier's number
  uint64_t waitPhase = 0;   // the phase that must be over
  uint64_t clusterPhase = 0;
  bool timedOut = false; // try_wait shall return false
  bool hasTurn = false;  // one access to memory that other blocks answer to
  bool polls = false;    // it gave way because what it looks for is not there

  // Groups of asynchronous work: how many were committed.
  uint64_t wgmmaGroups = 0;
  std::array<uint32_t, 32> bulkGroups{}, copyGroups{};

  std::vector<Fragment> parked;
  std::vector<uint8_t> memory, local;

  template <class T> T *at(Slot s) const { return reinterpret_cast<T *>(area[s >> areaShift] + (s & offsetMask)); }
  void run(uint64_t budget);
  void branch(uint32_t taken, uint32_t target); // taken: among exec
  void split(uint32_t lanes, uint32_t to);      // some of the active lanes go on at `to` later
  void exitLanes(uint32_t lanes);
  // True where `lanes` of the warp are all here; otherwise the fragment is parked until they are.
  bool converge(const Inst &i, uint32_t lanes);
  // Stops the warp until the scheduler finds that it may go on; `again`: the instruction is executed anew.
  void wait(Status why, bool again);
  // Before an access that other blocks answer to: true once it is this warp's turn; until then it stops.
  bool inTurn();
  void reconverge();
  void rotate();
  [[noreturn]] void fail(const std::string &message) const;
  // Lanes' addresses as host pointers; checks bounds and alignment.
  void resolve(const Inst &i, Slot base, Space space, unsigned bytes, Access kind, uint8_t *out[32]);
  uint8_t *resolveLane(uint64_t address, Space space, unsigned bytes, Access kind, unsigned lane);
  uint8_t *global(uint64_t address, uint64_t bytes, bool write, unsigned lane);
};

// What a block did, for Counts.
struct Counters {
  std::vector<uint64_t> executed; // of each instruction
  uint64_t sharedBytes = 0, sharedWavefronts = 0, sharedIdeal = 0, globalBytes = 0, globalSectors = 0;
  uint64_t bulkLoadBytes = 0, bulkStoreBytes = 0, barrierWaits = 0, mbarrierWaits = 0;
  void memory(const uint8_t *sharedFirst, const uint8_t *sharedEnd, uint8_t *const *lanes, uint32_t mask,
              uint32_t bytes);
  void addTo(Counts &counts, const Program &program) const;
};

// All clusters at `first` blocks; what they did goes to `result`.
struct Grid;
void runGrid(const Grid &grid, const std::vector<uint64_t> &first, Result &result);

struct Grid {
  const Machine &machine;
  const Image &image;
  const Program &program;
  const Launch &launch;
  const Options &options;
  std::vector<uint8_t> params;
  std::vector<Machine::Range> own; // the module's variables and the parameter buffer

  const Machine::Range *find(uint64_t address) const;
};

struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;
  uint32_t arrived = 0; // warps at barrier.cluster
  uint64_t phase = 0;

  Cluster(const Grid &grid, uint64_t firstBlock);
  // Runs until all is done (true) or warps wait for their turn.
  bool run();
  // One access each, with no other block running.
  void giveTurns();
  std::string describeWaits() const;
};

enum class Step : uint8_t { Ran, Stalled, Done };

struct Block {
  Block(const Grid &grid, Cluster &cluster, uint64_t index, uint32_t rank);
  ~Block();
  Step step();
  // For lack of anything else: lets the waits of try_wait time out. False where nothing waits that way.
  bool timeOut();

  // Shared memory of this block or, by the rank in the address, of another of the cluster.
  Block &owner(const Warp &w, uint32_t &address);
  uint8_t *sharedAt(const Warp &w, uint32_t address, uint32_t bytes, uint32_t align);
  Mbarrier &mbarrier(const Warp &w, uint32_t address);
  void arrive(const Warp &w, Mbarrier &barrier, uint32_t count);
  void completeBytes(const Warp &w, Mbarrier &barrier, int64_t bytes);
  void barrierArrive(Warp &w, uint32_t id, uint32_t threads, bool waits);
  void leaveBarriers();

  void issue(AsyncWork work);
  // Does what a wait names: groups of `warp` (and `lane`, unless negative) numbered below `until`;
  // `onlyRead`: until their sources have been read.
  void finishGroups(Warp &warp, int lane, AsyncWork::Group group, uint64_t until, bool onlyRead);

  std::unique_ptr<Detector> detector;
  std::unique_ptr<Counters> counters;
  const Grid &grid;
  Cluster &cluster;
  uint64_t index;
  uint32_t rank;
  Dim id;
  std::vector<uint8_t> shared; // addresses from 0; the first kilobyte is not accessible
  uint32_t sharedEnd = 0;
  std::vector<Warp> warps;
  std::array<NamedBarrier, 16> barriers;
  std::unordered_map<uint32_t, Mbarrier> mbarriers;
  std::deque<AsyncWork> inFlight;
  uint64_t instructions = 0;
  uint64_t progress = 0; // counts phases and completions: unchanged, nothing new can be expected
  std::mt19937_64 random;

private:
  void setUp(Warp &warp);
  void setSpecials(Warp &warp);
  bool runnable(Warp &w);
  bool finishSome();
  void perform(size_t index);
  size_t turn = 0;
  uint64_t idlePolls = 0, seenProgress = 0;
};

} // namespace gdn::emu
