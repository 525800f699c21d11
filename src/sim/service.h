// A service in virtual time: hosts that take attempts, make them wait, work on them and answer.
//
// An attempt on a host: over the network → a slot, where the host has a limited number → a lock,
// where it needs one, held for a time → the work outside the lock → over the network back. Waiting
// is FIFO everywhere.
//
// No engine in here: a driver (sim/simulation.h) sends attempts and is told how they ended.
// Thread safety: one thread, that of the timers. Randomness: one stream, from the seed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/unique_function.h"
#include "hedge/engine/race.h"
#include "io/timers.h"
#include "sim/fault.h"
#include "sim/law.h"

namespace tailward::sim {

// What a server does when it hears that the client has given an attempt up.
enum class HeedsCancel {
  kNever,  // everything takes its full time all the same
  // It stops queueing for a slot and stops working outside the lock, at once. In the lock phase it
  // does not look: it waits, takes the lock and holds it its full time.
  kOutsideLock,
  // Also, having got the lock, it looks first and releases it at once. The wait for the lock cannot
  // be interrupted, as with a real mutex; what has begun under it is completed.
  kEverywhere,
};

// A mutex, or several that share out the keys: the lock of a key is number key mod shards.
struct LockConfig {
  std::string name = "lock";
  Law hold = {};
  std::uint32_t shards = 1;
};

struct HostConfig {
  std::string name = {};
  Law work = {};                         // outside the lock
  std::optional<std::size_t> lock = {};  // index into ServiceConfig::locks; hosts may share one
  std::uint32_t concurrency = 0;         // attempts in service at once; 0: no limit
  HeedsCancel heeds_cancel = HeedsCancel::kEverywhere;
  std::vector<Fault> faults = {};
};

struct ServiceConfig {
  std::vector<HostConfig> hosts = {};
  std::vector<LockConfig> locks = {};
  Duration network{};  // one way, for attempts, responses and cancellations alike
  // Attempts in the service at once, given up ones included; what comes above it is refused.
  std::size_t jobs_max = 1'000'000;
};

struct LockCounters {
  std::uint64_t taken = 0;
  std::uint64_t waited = 0;  // of these, how many found it held
  Duration wait{};           // summed up when the wait ends
  Duration wait_max{};
  Duration held{};
  std::uint64_t queue_max = 0;  // of one shard
};

struct ServiceCounters {
  std::uint64_t attempts = 0;  // arrived at a host
  std::uint64_t answered = 0;  // done with, whether or not somebody still wanted the response
  std::uint64_t unwanted = 0;  // of these, how many nobody wanted any more
  std::uint64_t stopped = 0;   // ended early because the client had given them up
  std::uint64_t failed = 0;    // by a fault
  std::uint64_t refused = 0;   // by jobs_max
  std::uint64_t slot_queue_max = 0;
};

class Service {
 public:
  // An attempt ended, as the client sees it: `token` is what it gave to send(). Not called for
  // attempts that it has cancelled, and never from within send() or cancel().
  using Ended = UniqueFunction<void(std::uint64_t token, const hedge::Outcome& outcome)>;

  struct JobId {
    std::uint32_t index = 0;
    std::uint32_t generation = 0;  // 0: none
  };

  // Faults count from timers.now(). The timers must outlive the service.
  Service(const ServiceConfig& config, io::Timers& timers, std::uint64_t seed, Ended ended);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // REQUIRES: host < hosts().
  JobId send(hedge::HostIndex host, std::uint64_t key, std::uint64_t token);
  // The client gives the attempt up; nothing happens when it has ended already.
  void cancel(JobId id);

  [[nodiscard]] std::size_t hosts() const { return hosts_.size(); }
  // Attempts on their way or at a host, those that the client has given up included.
  [[nodiscard]] std::size_t jobs() const { return jobs_.size() - free_.size(); }
  [[nodiscard]] const ServiceCounters& counters() const { return counters_; }
  [[nodiscard]] std::uint64_t attempts_at(hedge::HostIndex host) const {
    return hosts_[host].attempts;
  }
  // Over all of its shards.
  [[nodiscard]] const LockCounters& lock_counters(std::size_t lock) const {
    return locks_[lock].counters;
  }
  [[nodiscard]] Duration lock_wait() const;  // over all locks

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  enum class Phase : std::uint8_t {
    kUnderWay,  // to the host
    kRefused,
    kFailing,
    kSlotQueue,
    kLockQueue,
    kHolding,
    kWorking,
    kReturning,
  };
  struct Job {
    std::uint32_t generation = 1;
    std::uint32_t previous = kNone;  // in the queue that it waits in
    std::uint32_t next = kNone;
    hedge::HostIndex host = 0;
    Phase phase = Phase::kUnderWay;
    bool unwanted = false;   // the client has given it up
    bool cancelled = false;  // and the host knows
    std::uint64_t key = 0;
    std::uint64_t token = 0;
    TimePoint since{};  // it waits, or holds the lock
    hedge::Outcome outcome;
    io::Timer timer;
    io::Timer cancel_timer;
  };
  // FIFO of jobs, linked through them: no allocation, and leaving it is O(1).
  struct Queue {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    std::uint64_t length = 0;
  };
  struct Shard {
    bool held = false;
    Queue queue;
  };
  struct Lock {
    Law hold;
    std::vector<Shard> shards;
    LockCounters counters;
  };
  struct Host {
    HostConfig config;
    FaultSchedule faults;
    std::uint64_t attempts = 0;
    std::uint32_t busy = 0;
    Queue queue;
  };

  std::uint32_t take_job();
  void free_job(std::uint32_t job);
  void push(Queue& queue, std::uint32_t job);
  void unlink(Queue& queue, std::uint32_t job);
  // Runs the member function for the job after `work` at the host's pace, or never.
  void proceed_after(std::uint32_t job, Duration work, void (Service::*next)(std::uint32_t));

  void arrive(std::uint32_t job);
  void enter(std::uint32_t job);
  void lock_acquired(std::uint32_t job, Lock& lock);
  void hold(std::uint32_t job, Lock& lock);
  void hold_over(std::uint32_t job);
  void unlock(Lock& lock, Shard& shard);
  void work(std::uint32_t job);
  void work_over(std::uint32_t job);
  void leave_slot(hedge::HostIndex host);
  void stop(std::uint32_t job);
  void respond(std::uint32_t job);
  void deliver(std::uint32_t job);
  void host_hears_cancel(std::uint32_t job);
  [[nodiscard]] Lock& lock_of(const Job& job) { return locks_[*hosts_[job.host].config.lock]; }
  [[nodiscard]] static Shard& shard_of(const Job& job, Lock& lock) {
    return lock.shards[job.key % lock.shards.size()];
  }

  io::Timers& timers_;
  Rng rng_;
  Ended ended_;
  Duration network_;
  std::size_t jobs_max_;
  std::vector<Host> hosts_;
  std::vector<Lock> locks_;
  std::vector<Job> jobs_;
  std::vector<std::uint32_t> free_;
  ServiceCounters counters_;
};

}  // namespace tailward::sim
