// Scripted TCP exchanges in virtual time: clients and one server, a link between them, and what a
// capture of it shows. Packets cross net::LinkQueue, the same as those of net::Link do.
//
// Pure and deterministic: the same CapturePlan gives the same Recording, to the nanosecond.
//
// Thread safety: none needed; values in, values out.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "net/link.h"
#include "sim_tcp/sender.h"
#include "tcp/segment.h"

namespace tailward::sim_tcp {

// What a program does with its socket, one after another, as blocking system calls.
struct ScriptStep {
  enum class Kind {
    kWrite,   // `bytes`; returns when all are in the send buffer
    kRead,    // `bytes` in all, at most `chunk` in each call, with a pause of `length` after each
    kWait,    // `length`
    kCork,    // TCP_CORK on
    kUncork,  // TCP_CORK off
    kClose
  };
  Kind kind{};
  std::uint64_t bytes = 0;
  Duration length{};
  std::uint64_t chunk = UINT64_MAX;
};
using Script = std::vector<ScriptStep>;

constexpr ScriptStep write(std::uint64_t bytes) {
  return {.kind = ScriptStep::Kind::kWrite, .bytes = bytes};
}
constexpr ScriptStep read(std::uint64_t bytes) {
  return {.kind = ScriptStep::Kind::kRead, .bytes = bytes};
}
constexpr ScriptStep read_slowly(std::uint64_t bytes, std::uint64_t chunk, Duration pause) {
  return {.kind = ScriptStep::Kind::kRead, .bytes = bytes, .length = pause, .chunk = chunk};
}
constexpr ScriptStep wait(Duration length) {
  return {.kind = ScriptStep::Kind::kWait, .length = length};
}
constexpr ScriptStep cork(bool on) {
  return {.kind = on ? ScriptStep::Kind::kCork : ScriptStep::Kind::kUncork};
}
constexpr ScriptStep close() { return {.kind = ScriptStep::Kind::kClose}; }

struct ConnectionPlan {
  Duration begins{};  // the client connects
  Script client;      // from when connect() has returned
  Script server;      // from when accept() has returned
};

struct CapturePlan {
  std::uint64_t seed = 1;
  std::vector<ConnectionPlan> connections;
  EndpointOptions client, server;
  net::LinkShape link;         // both ways; offload and mtu are not used: segments have 1448 bytes
  std::size_t backlog = 1024;  // as for listen(): one more than that may wait (sk_acceptq_is_full)
  Duration accept_rest{};      // the acceptor's, after each accept()
  Duration system_call = std::chrono::microseconds(4);  // each one's, and its host's
  enum class Capture { kServer, kClient, kBetween };
  Capture capture = Capture::kServer;
  Duration until = std::chrono::seconds(60);  // then all ends as it stands
};

struct Recording {
  std::vector<tcp::Segment> segments;  // in the order of capture
  std::uint64_t scripts_done = 0;      // of two for each connection
  std::uint64_t lost = 0;              // by the link, SYNs included
  std::uint64_t overflows = 0;         // SYNs and ACKs that the full listener dropped
  Duration length{};                   // until the last script was done, in virtual time
};

Recording run(const CapturePlan& plan);

}  // namespace tailward::sim_tcp
