// A network of our own for experiments: two network namespaces, one TUN device in each, and a
// forwarder between them in user space that delays, limits, loses and reorders packets. TCP itself
// is the kernel's. Nothing outside the two namespaces is touched, and nothing of it has a name in
// the file system: when the last process that uses it ends, however it ends, it is gone.
//
// Each namespace has its loopback up too, for experiments that want one that nobody else uses.
//
// Thread safety: belongs to one thread, the forwarder excepted, which runs on one of its own;
// enter() and run_inside() may be called from any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "base/unique_function.h"

namespace tailward::net {

struct LinkShape {
  Duration delay{};                    // one way
  double bits_per_s = 0;               // 0: as fast as the forwarder goes
  std::uint32_t queue_packets = 1000;  // waiting for the rate; more are dropped
  double loss = 0;                     // share of packets, each drawn for itself
  double syn_loss = 0;                 // the same for packets with SYN, instead of `loss`
  double reorder = 0;                  // share of packets that are overtaken by the next
  // The two below are taken from create() and cannot be changed afterwards.
  int mtu = 1500;
  // Segments cross uncut, as with a network card that cuts and joins them (TSO and GRO): packets,
  // and captures at the ends, are up to 64 KiB large. Ten times the throughput.
  bool offload = false;
};

struct LinkCounters {
  std::uint64_t forwarded = 0, bytes = 0, lost = 0, syns_lost = 0, queue_drops = 0, reordered = 0;
};

class Link {
 public:
  enum class End { kClient, kServer };

  // Needs CAP_SYS_ADMIN and CAP_NET_ADMIN, or user namespaces that are allowed (not while this
  // process has several threads). Errors: kDenied with what is missing, kUnsupported (no TUN).
  static Result<std::unique_ptr<Link>> create(const LinkShape& both_ways, std::uint64_t seed);
  ~Link();

  // "198.18.0.1" and "198.18.0.2" (RFC 2544's range for such tests).
  [[nodiscard]] static std::string address(End end);
  [[nodiscard]] static std::string interface_name();  // "tw0", in both namespaces

  // Moves the calling thread into that end's namespace, for good.
  Result<void> enter(End end);
  // Runs `task` on a new thread inside that end's namespace and waits for it.
  Result<void> run_inside(End end, UniqueFunction<void()> task);
  // For a child process: a path under /proc/<our pid>/fd that names the namespace for setns(2).
  [[nodiscard]] std::string namespace_path(End end) const;

  // From `end` to the other one.
  void shape(End from, const LinkShape& shape);
  [[nodiscard]] LinkCounters counters(End from) const;

 private:
  class Impl;
  explicit Link(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tailward::net
