// Finds what the schedule at hand may hide: data races in shared memory, generic writes that the asynchronous proxy
// reads without a fence, tiles and registers that are used again while asynchronous work reads or writes them, and
// memory and registers that are read before they are written. The first finding ends the launch.
//
// Happens-before is kept as vector clocks over actors: the warps of a block, and for each warp its matrix products and
// its bulk stores, and bulk loads by turns. What asynchronous work touches counts from its issue to the wait that names
// it, whenever the schedule happens to do it. Lanes of a warp are one actor.
#pragma once
#include "Machine.h"

namespace gdn::emu {

struct Clock {
  std::vector<uint32_t> seen; // of each actor: what happened before
  std::vector<uint32_t>
      fenced; // of each warp: which of its writes a proxy fence made visible to the asynchronous proxy
  void join(const Clock &other);
};

// An actor at a time, and what it knows.
struct Ticket {
  uint32_t actor = 0, time = 0;
  std::shared_ptr<const Clock> known;
};

class Detector {
public:
  explicit Detector(Block &block);

  // Shared memory, by offset from address 0.
  void access(Warp &w, const Inst &i, Access kind, uint32_t address, uint32_t bytes);
  void access(Warp &w, const Inst &i, Access kind, uint8_t *const *lanes, uint32_t bytes);
  void workAccess(Warp &w, const Inst &i, const Ticket &work, Access kind, uint32_t address, uint32_t bytes);
  void placeMbarrier(uint32_t address, bool there);

  // Order.
  void proxyFence(Warp &w);
  void arrive(Warp &w, Clock &barrier);
  void leave(Warp &w, const Clock &barrier);
  Clock &named(uint32_t number) { return namedClocks[number]; }
  Clock &mbarrier(uint32_t address) { return mbarriers[address].current; }
  void phaseDone(uint32_t address);
  void waited(Warp &w, uint32_t address) { leave(w, mbarriers[address].done); }
  Clock clusterClock;

  // Asynchronous work.
  Ticket begin(Warp &w, AsyncWork::Group group);
  void completed(const Ticket &work, uint32_t mbarrier);
  void groupsDone(Warp &w, AsyncWork::Group group, uint64_t until);
  void exits(Warp &w);
  void blockDone();

  // Registers.
  void registers(Warp &w, const Inst &i);
  void registersOfProduct(Warp &w, const Inst &i, bool accumulates);
  void matrixFence(Warp &w);

private:
  struct Epoch {
    uint32_t actor, time, line;
  };
  // What is known of a byte; bytes with the same history share one.
  struct State {
    bool written = false, mbarrier = false;
    Epoch writer{};
    std::vector<Epoch> readers;
  };
  struct Toucher {
    Warp &w;
    const Inst &i;
    uint32_t actor, time;
    const Clock &known;
    bool async;
    Access kind;
  };
  // Of a register that a product uses, or that may be unset. Groups count from 1; 0: none.
  struct RegisterState {
    uint32_t unset = ~0u;
    uint64_t sum = 0, operand = 0; // last group that writes and that reads it
    uint64_t written = 0;          // matrix fences before its last ordinary write, plus 1
  };
  struct WarpState {
    Clock clock;
    std::vector<RegisterState> registers; // of Program::watches
    uint64_t fences = 0, groupsDone = 0;
    std::vector<std::pair<uint64_t, uint32_t>> products; // group, time
    std::vector<std::pair<uint64_t, uint32_t>> stores;
  };
  struct MbarrierState {
    Clock current, done;
  };
  struct Load {
    uint32_t time = 0;
    uint32_t line = 0, warp = 0; // that issued it
    bool seen = true;
  };

  void touch(const Toucher &t, uint32_t address, uint32_t bytes);
  uint32_t transition(uint32_t state, const Toucher &t, uint32_t address);
  uint32_t next(uint32_t state, const Toucher &t, uint32_t address);
  void checkWriter(const State &s, const Toucher &t, uint32_t address) const;
  [[noreturn]] void race(const Toucher &t, const Epoch &other, const char *what, uint32_t address) const;
  std::string describe(const Epoch &epoch) const;
  std::string registerName(size_t watch) const;
  void compact();

  Block &block;
  const Program &program;
  uint32_t warps, actors;
  std::vector<WarpState> warpStates;
  std::vector<Clock> namedClocks;
  std::unordered_map<uint32_t, MbarrierState> mbarriers;
  std::vector<uint32_t> asyncTime; // of each actor that is not a warp
  std::vector<Load> loads;
  size_t nextLoad = 0;
  std::vector<uint32_t> shadow; // of each byte: index into states
  std::vector<State> states;
  struct Memo {
    uint64_t key = ~uint64_t(0);
    uint32_t from = 0, to = 0;
  };
  std::vector<Memo> memo;
  std::vector<uint32_t> firstReference;      // of each instruction
  std::unordered_map<int, uint32_t> watchOf; // of a register
};

} // namespace gdn::emu
