// Moves packets between the two TUN devices of a link, on a thread of its own, as its two queues
// say.
//
// A packet comes out within about 100 µs of its time on an idle machine: the thread asks the kernel
// for the smallest timer slack, and for precedence over ordinary threads where that is allowed.
//
// Thread safety: all functions from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>

#include "net/link_queue.h"

namespace tailward::net {

class LinkForwarder {
 public:
  // Takes packets out of devices[i] and puts them into the other one, as queue i says. The
  // descriptors must not block; they and `stop`, an eventfd, are closed at the end.
  // `prefix`: what the devices put before each packet.
  LinkForwarder(std::array<int, 2> devices, int stop, const LinkShape& both_ways,
                std::uint64_t seed, std::size_t prefix);
  ~LinkForwarder();
  LinkForwarder(const LinkForwarder&) = delete;
  LinkForwarder& operator=(const LinkForwarder&) = delete;

  void shape(std::size_t from, const LinkShape& shape);
  [[nodiscard]] LinkCounters counters(std::size_t from) const;

 private:
  struct Direction {
    mutable std::mutex mutex;
    LinkQueue queue;
    Direction(const LinkShape& shape, Rng rng, std::size_t prefix) : queue(shape, rng, prefix) {}
  };

  void run();
  // What there is, within a batch; false when there was nothing.
  bool take(std::size_t from, std::span<char> room);
  // What is due; then when the next one will be.
  TimePoint give(std::size_t from);

  const std::array<int, 2> devices_;
  const int stop_;
  std::array<Direction, 2> directions_;
  std::thread thread_;
};

}  // namespace tailward::net
