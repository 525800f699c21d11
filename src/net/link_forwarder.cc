#include "net/link_forwarder.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "net/real_clock.h"

namespace tailward::net {
namespace {

// The largest IP packet, and what a device puts before it.
constexpr std::size_t kPacketBytesMax = 65'536 + 64;
// Taken from one device before the others get their turn.
constexpr int kBatch = 64;
// Packets that follow each other this closely are no longer waited for one by one, as a network
// card does with its interrupts: a wake-up costs more than a packet.
constexpr Duration kClose = std::chrono::microseconds(100);
constexpr Duration kGather = std::chrono::microseconds(50);
// A timer wakes a thread late, on virtual machines by 100 µs and more. It is set earlier by what is
// usual, but by no more than this, and the rest is waited for without sleeping.
constexpr Duration kLeadMax = std::chrono::microseconds(150);

}  // namespace

LinkForwarder::LinkForwarder(std::array<int, 2> devices, int stop, const LinkShape& both_ways,
                             std::uint64_t seed, std::size_t prefix)
    : devices_(devices),
      stop_(stop),
      directions_{Direction(both_ways, Rng::stream(seed, 0), prefix),
                  Direction(both_ways, Rng::stream(seed, 1), prefix)} {
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LinkForwarder::~LinkForwarder() {
  const std::uint64_t one = 1;
  // An eventfd that is not full takes eight bytes: nothing to handle.
  static_cast<void>(::write(stop_, &one, sizeof one) == sizeof one);
  thread_.join();
  ::close(stop_);
  for (const int device : devices_) ::close(device);
}

void LinkForwarder::shape(std::size_t from, const LinkShape& shape) {
  const std::lock_guard lock(directions_[from].mutex);
  directions_[from].queue.reshape(shape);
}

LinkCounters LinkForwarder::counters(std::size_t from) const {
  const std::lock_guard lock(directions_[from].mutex);
  return directions_[from].queue.counters();
}

bool LinkForwarder::take(std::size_t from, std::span<char> room) {
  bool any = false;
  for (int i = 0; i < kBatch; ++i) {
    const ssize_t size = ::read(devices_[from], room.data(), room.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    any = true;
    const std::lock_guard lock(directions_[from].mutex);
    directions_[from].queue.offer(room.first(static_cast<std::size_t>(size)), real_now());
  }
  return any;
}

TimePoint LinkForwarder::give(std::size_t from) {
  const std::lock_guard lock(directions_[from].mutex);
  LinkQueue& queue = directions_[from].queue;
  const TimePoint now = real_now();
  for (std::span<const char> packet = queue.due(now); !packet.empty(); packet = queue.due(now)) {
    // A device that takes nothing is down: then the packet is lost, as on any line.
    static_cast<void>(::write(devices_[1 - from], packet.data(), packet.size()) > 0);
    queue.pop();
  }
  return queue.next_due();
}

void LinkForwarder::run() {
  ::pthread_setname_np(::pthread_self(), "link");
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  // A cable does not wait for a CPU. Where it is not allowed, the link is as punctual as the
  // machine is idle.
  const sched_param first{.sched_priority = 1};
  static_cast<void>(::pthread_setschedparam(::pthread_self(), SCHED_RR, &first));
  std::vector<char> room(kPacketBytesMax);
  std::array<pollfd, 3> ready{
      {{stop_, POLLIN, 0}, {devices_[0], POLLIN, 0}, {devices_[1], POLLIN, 0}}};
  TimePoint last{};  // something came
  Duration lead{};
  while (ready[0].revents == 0) {
    const bool first_took = take(0, room);
    const bool took = take(1, room) || first_took;
    const TimePoint next = std::min(give(0), give(1));
    const TimePoint now = real_now();
    const bool gather = took && now - last < kClose;
    if (took) last = now;
    const TimePoint until = gather ? std::min(next, now + kGather) : next;
    const Duration wait = std::max(until - now - (gather ? Duration{0} : lead), Duration{0});
    const timespec at_most{wait.count() / 1'000'000'000, wait.count() % 1'000'000'000};
    // An error other than a signal, which is none either, cannot come: the descriptors are ours.
    const int woken = ::ppoll(ready.data(), gather ? 1 : ready.size(),
                              until == kNever ? nullptr : &at_most, nullptr);
    if (woken != 0 || gather || wait == Duration{0}) continue;
    const Duration late = real_now() - (now + wait);
    lead = std::clamp(lead + (late - lead) / 8, Duration{0}, kLeadMax);
    while (real_now() < until) {
    }
  }
}

}  // namespace tailward::net
