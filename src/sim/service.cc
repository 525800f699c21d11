#include "sim/service.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tailward::sim {

Service::Service(const ServiceConfig& config, io::Timers& timers, std::uint64_t seed, Ended ended)
    : timers_(timers),
      rng_(seed),
      ended_(std::move(ended)),
      network_(config.network),
      jobs_max_(config.jobs_max) {
  for (const LockConfig& lock : config.locks) {
    TAILWARD_CHECK(lock.shards > 0);
    locks_.push_back({lock.hold, std::vector<Shard>(lock.shards), {}});
  }
  for (const HostConfig& host : config.hosts) {
    TAILWARD_CHECK(!host.lock || *host.lock < locks_.size());
    hosts_.push_back({host, FaultSchedule(host.faults, timers.now()), 0, 0, {}});
  }
}

Duration Service::lock_wait() const {
  Duration sum{};
  for (const Lock& lock : locks_) sum += lock.counters.wait;
  return sum;
}

std::uint32_t Service::take_job() {
  if (free_.empty()) {
    jobs_.emplace_back();
    return static_cast<std::uint32_t>(jobs_.size() - 1);
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

void Service::free_job(std::uint32_t index) {
  // A place is used again with another generation, so that an old JobId cancels nobody else's job.
  // 0 is never given: it means "no job".
  const std::uint32_t generation = jobs_[index].generation + 1;
  jobs_[index] = Job{};
  jobs_[index].generation = generation == 0 ? 1 : generation;
  free_.push_back(index);
}

// Queues are linked through the jobs: a cancelled job leaves the middle in O(1), and nothing is
// allocated.
void Service::push(Queue& queue, std::uint32_t index) {
  jobs_[index].previous = queue.last;
  jobs_[index].next = kNone;
  (queue.last == kNone ? queue.first : jobs_[queue.last].next) = index;
  queue.last = index;
  ++queue.length;
}

void Service::unlink(Queue& queue, std::uint32_t index) {
  const Job& job = jobs_[index];
  (job.previous == kNone ? queue.first : jobs_[job.previous].next) = job.next;
  (job.next == kNone ? queue.last : jobs_[job.next].previous) = job.previous;
  --queue.length;
}

void Service::proceed_after(std::uint32_t index, Duration work,
                            void (Service::*next)(std::uint32_t)) {
  Job& job = jobs_[index];
  const TimePoint at = hosts_[job.host].faults.finish(timers_.now(), work);
  // A host that hangs for ever: the job stays until it is cancelled.
  if (at >= kNever) return;
  job.timer = timers_.at(at, [this, index, next] { (this->*next)(index); });
}

Service::JobId Service::send(hedge::HostIndex host, std::uint64_t key, std::uint64_t token) {
  TAILWARD_CHECK(host < hosts_.size());
  const bool refused = jobs() >= jobs_max_;
  const std::uint32_t index = take_job();
  Job& job = jobs_[index];
  job.host = host;
  job.key = key;
  job.token = token;
  const JobId id{index, job.generation};
  if (refused) {
    ++counters_.refused;
    job.phase = Phase::kRefused;
    job.outcome = {.result = hedge::Outcome::Class::kBad, .has_response = false};
    // Never inside of send(): the caller does not have the id yet.
    job.timer = timers_.at(timers_.now(), [this, index] { deliver(index); });
  } else if (network_ > Duration{0}) {
    job.timer = timers_.after(network_, [this, index] { arrive(index); });
  } else {
    arrive(index);
  }
  return id;
}

void Service::arrive(std::uint32_t index) {
  Job& job = jobs_[index];
  Host& host = hosts_[job.host];
  ++counters_.attempts;
  ++host.attempts;
  const Fault* fault = nullptr;
  host.faults.for_each_error(timers_.now(), [&](const Fault& candidate) {
    if (fault == nullptr && rng_.chance(candidate.error_share)) fault = &candidate;
  });
  // Failing takes no slot: a server that refuses does so before it works.
  if (fault != nullptr) {
    ++counters_.failed;
    job.phase = Phase::kFailing;
    job.outcome = fault->error;
    proceed_after(index, fault->error_after, &Service::respond);
    return;
  }
  if (host.config.concurrency != 0 && host.busy >= host.config.concurrency) {
    job.phase = Phase::kSlotQueue;
    push(host.queue, index);
    counters_.slot_queue_max = std::max(counters_.slot_queue_max, host.queue.length);
    return;
  }
  ++host.busy;
  enter(index);
}

// In its slot.
void Service::enter(std::uint32_t index) {
  Job& job = jobs_[index];
  // The order on a host is slot, lock, work: a thread of the pool takes the lock and holds its slot
  // while it waits. That is how one lock fills a pool.
  if (!hosts_[job.host].config.lock) {
    work(index);
    return;
  }
  Lock& lock = lock_of(job);
  Shard& shard = shard_of(job, lock);
  job.since = timers_.now();
  if (shard.held) {
    job.phase = Phase::kLockQueue;
    push(shard.queue, index);
    ++lock.counters.waited;
    lock.counters.queue_max = std::max(lock.counters.queue_max, shard.queue.length);
    return;
  }
  shard.held = true;
  lock_acquired(index, lock);
  hold(index, lock);
}

void Service::lock_acquired(std::uint32_t index, Lock& lock) {
  const Duration waited = timers_.now() - jobs_[index].since;
  ++lock.counters.taken;
  lock.counters.wait += waited;
  lock.counters.wait_max = std::max(lock.counters.wait_max, waited);
}

void Service::hold(std::uint32_t index, Lock& lock) {
  jobs_[index].phase = Phase::kHolding;
  jobs_[index].since = timers_.now();
  proceed_after(index, lock.hold.draw(rng_), &Service::hold_over);
}

void Service::hold_over(std::uint32_t index) {
  Job& job = jobs_[index];
  Lock& lock = lock_of(job);
  lock.counters.held += timers_.now() - job.since;
  unlock(lock, shard_of(job, lock));
  // jobs_ has not grown meanwhile: unlocking sends nothing.
  if (job.cancelled) {
    stop(index);
  } else {
    work(index);
  }
}

// To the next one that keeps it; those that look and find that they were cancelled do not.
void Service::unlock(Lock& lock, Shard& shard) {
  while (shard.queue.first != kNone) {
    const std::uint32_t next = shard.queue.first;
    unlink(shard.queue, next);
    lock_acquired(next, lock);
    const Job& job = jobs_[next];
    // Nothing interrupts the wait for a mutex. A careful server looks at its cancellation once it
    // has the lock.
    const bool looks = hosts_[job.host].config.heeds_cancel == HeedsCancel::kEverywhere;
    if (!(looks && job.cancelled)) {
      hold(next, lock);
      return;
    }
    // It has had the lock, and gives it on at once.
    stop(next);
  }
  shard.held = false;
}

void Service::work(std::uint32_t index) {
  Job& job = jobs_[index];
  job.phase = Phase::kWorking;
  proceed_after(index, hosts_[job.host].config.work.draw(rng_), &Service::work_over);
}

void Service::work_over(std::uint32_t index) {
  leave_slot(jobs_[index].host);
  respond(index);
}

void Service::leave_slot(hedge::HostIndex host_index) {
  Host& host = hosts_[host_index];
  if (host.queue.first == kNone) {
    --host.busy;
    return;
  }
  const std::uint32_t next = host.queue.first;
  unlink(host.queue, next);
  enter(next);
}

// Ends a job that holds a slot and that nobody wants.
void Service::stop(std::uint32_t index) {
  ++counters_.stopped;
  const hedge::HostIndex host = jobs_[index].host;
  free_job(index);
  leave_slot(host);
}

void Service::respond(std::uint32_t index) {
  Job& job = jobs_[index];
  ++counters_.answered;
  if (job.unwanted) {
    ++counters_.unwanted;
    free_job(index);
  } else if (network_ > Duration{0}) {
    job.phase = Phase::kReturning;
    job.timer = timers_.after(network_, [this, index] { deliver(index); });
  } else {
    deliver(index);
  }
}

void Service::deliver(std::uint32_t index) {
  const std::uint64_t token = jobs_[index].token;
  const hedge::Outcome outcome = jobs_[index].outcome;
  const bool unwanted = jobs_[index].unwanted;
  // First, because the client may send the next attempt from within.
  free_job(index);
  if (!unwanted) ended_(token, outcome);
}

void Service::cancel(JobId id) {
  if (id.generation == 0 || jobs_[id.index].generation != id.generation) return;
  Job& job = jobs_[id.index];
  if (job.unwanted) return;
  job.unwanted = true;
  if (job.phase == Phase::kRefused || job.phase == Phase::kReturning) return;
  if (network_ > Duration{0}) {
    const std::uint32_t index = id.index;
    job.cancel_timer = timers_.after(network_, [this, index] { host_hears_cancel(index); });
  } else {
    host_hears_cancel(id.index);
  }
}

void Service::host_hears_cancel(std::uint32_t index) {
  Job& job = jobs_[index];
  Host& host = hosts_[job.host];
  if (host.config.heeds_cancel == HeedsCancel::kNever) return;
  job.cancelled = true;
  switch (job.phase) {
    case Phase::kFailing:
      ++counters_.stopped;
      free_job(index);
      break;
    case Phase::kSlotQueue:
      ++counters_.stopped;
      unlink(host.queue, index);
      free_job(index);
      break;
    case Phase::kWorking:
      stop(index);
      break;
    case Phase::kUnderWay:
    case Phase::kRefused:
    case Phase::kLockQueue:
    case Phase::kHolding:
    case Phase::kReturning:
      break;
  }
}

}  // namespace tailward::sim
