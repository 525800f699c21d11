#include "sim_tcp/fault_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/rng.h"

namespace tailward::sim_tcp {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::array<std::pair<InjectedFault, std::string_view>, 11> kNames{{
    {InjectedFault::kNone, "none"},
    {InjectedFault::kNagleDelayedAck, "nagle-delayed-ack"},
    {InjectedFault::kSmallWrites, "small-writes"},
    {InjectedFault::kCorked, "corked"},
    {InjectedFault::kSmallSendBuffer, "small-send-buffer"},
    {InjectedFault::kSmallReceiveWindow, "small-receive-window"},
    {InjectedFault::kPacketLoss, "packet-loss"},
    {InjectedFault::kSynLoss, "syn-loss"},
    {InjectedFault::kListenOverflow, "listen-overflow"},
    {InjectedFault::kSlowAccept, "slow-accept"},
    {InjectedFault::kSlowReader, "slow-reader"},
}};

constexpr std::uint64_t kHead = 70;        // bytes of an HTTP head
constexpr std::uint64_t kSmallWrite = 64;  // bytes
constexpr std::uint64_t kSmallBuffer = 8 * 1024;
constexpr std::uint64_t kSlowRead = 24 * 1024;
constexpr Duration kSlowReadRest = milliseconds(8);
constexpr std::uint64_t kAmpleBuffer = 192 * 1024;  // large, and yet one that an upload fills
constexpr Duration kAcceptRest = milliseconds(25);
constexpr Duration kBurstAcceptRest = milliseconds(8);
constexpr std::size_t kBurst = 12;  // connections at once
constexpr Duration kBurstEvery = milliseconds(150);
constexpr Duration kWatch = std::chrono::seconds(3);

struct Draw {
  Rng rng;
  Duration within(Duration low, Duration high) {
    return low + Duration{static_cast<std::int64_t>(
                     rng.uniform(0, static_cast<double>((high - low).count())))};
  }
  std::uint64_t bytes(double low, double high) {
    return static_cast<std::uint64_t>(rng.uniform(low, high));
  }
  Duration about(Duration mean) {
    return Duration{static_cast<std::int64_t>(rng.exponential(static_cast<double>(mean.count())))};
  }
};

// What all requests of one service have in common.
struct Service {
  InjectedFault fault{};
  std::uint64_t response = 0, upload = 0;
  Duration think{};
  double faulty_share = 1;
  Duration rest = milliseconds(12);  // the client's, between requests, on average
};

// Mostly about the median; a few requests take long in the program itself, as everywhere.
Duration think(Draw& draw, Duration median) {
  constexpr double kLongShare = 0.03;
  const double factor =
      draw.rng.chance(kLongShare) ? draw.rng.uniform(8, 20) : std::exp(draw.rng.normal() * 0.4);
  return Duration{static_cast<std::int64_t>(static_cast<double>(median.count()) * factor)};
}

void add_response(const Service& service, bool faulty, Script& server) {
  const std::uint64_t all = kHead + service.response;
  if (faulty && service.fault == InjectedFault::kNagleDelayedAck) {
    server.push_back(write(kHead));
    server.push_back(write(service.response));
    return;
  }
  if (faulty && service.fault == InjectedFault::kSmallWrites) {
    for (std::uint64_t at = 0; at < all; at += kSmallWrite) {
      server.push_back(write(std::min(kSmallWrite, all - at)));
    }
    return;
  }
  if (service.fault == InjectedFault::kCorked) server.push_back(cork(faulty));
  server.push_back(write(all));
}

void add_request(const Service& service, Draw& draw, ConnectionPlan& connection) {
  const bool faulty = draw.rng.chance(service.faulty_share);
  const std::uint64_t request = kHead + service.upload;
  connection.client.push_back(write(request));
  connection.client.push_back(read(kHead + service.response));
  connection.client.push_back(wait(draw.about(service.rest)));
  if (faulty && service.fault == InjectedFault::kSlowReader) {
    connection.server.push_back(read_slowly(request, kSlowRead, kSlowReadRest));
  } else {
    connection.server.push_back(read(request));
  }
  connection.server.push_back(wait(think(draw, service.think)));
  add_response(service, faulty, connection.server);
}

void add_connection(const Service& service, Duration begins, std::size_t requests, Draw& draw,
                    CapturePlan& plan) {
  ConnectionPlan& connection = plan.connections.emplace_back();
  connection.begins = begins;
  for (std::size_t i = 0; i < requests; ++i) add_request(service, draw, connection);
  connection.client.push_back(close());
  connection.server.push_back(close());
}

// What the cause asks of sizes and of the two hosts.
void shape(Service& service, Draw& draw, CapturePlan& plan) {
  switch (service.fault) {
    case InjectedFault::kNagleDelayedAck:
      plan.server.nodelay = false;
      break;
    case InjectedFault::kSmallWrites:
      service.response = draw.bytes(32'000, 96'000);
      // It costs some milliseconds: a program that thinks for longer is slow for that reason.
      service.think = draw.within(microseconds(300), milliseconds(1));
      // A write that becomes a segment of its own goes all the way to the device; on a long path
      // its cost is lost in the round trips.
      plan.system_call = microseconds(10);
      plan.link.delay = draw.within(microseconds(50), microseconds(300));
      break;
    case InjectedFault::kCorked:
      if (draw.rng.chance(0.5)) service.response = draw.bytes(3'000, 20'000);
      break;
    case InjectedFault::kSmallSendBuffer:
      service.response = draw.bytes(600'000, 1'500'000);
      plan.server.send_buffer = kSmallBuffer;
      break;
    case InjectedFault::kSmallReceiveWindow:
      service.upload = draw.bytes(128'000, 400'000);
      plan.server.receive_buffer = kSmallBuffer;
      break;
    case InjectedFault::kSlowReader:
      service.upload = draw.bytes(1'000'000, 3'000'000);
      plan.server.receive_buffer = kAmpleBuffer;
      break;
    case InjectedFault::kPacketLoss:
      if (draw.rng.chance(0.5)) service.response = draw.bytes(5'000, 60'000);
      plan.link.loss = plan.link.syn_loss = draw.rng.uniform(0.02, 0.05);
      break;
    case InjectedFault::kSynLoss:
      plan.link.syn_loss = draw.rng.uniform(0.1, 0.25);
      break;
    case InjectedFault::kListenOverflow:
      plan.backlog = 2;
      plan.accept_rest = kBurstAcceptRest;
      break;
    case InjectedFault::kSlowAccept:
      plan.accept_rest = kAcceptRest;
      break;
    case InjectedFault::kNone:
      if (draw.rng.chance(0.3)) service.response = draw.bytes(5'000, 200'000);
      if (draw.rng.chance(0.3)) service.upload = draw.bytes(1'000, 100'000);
      break;
  }
}

void add_connections(const Service& service, std::uint64_t seed, Draw& draw, CapturePlan& plan) {
  const bool bulk = service.upload > 100'000 || service.response > 500'000;
  if (service.fault == InjectedFault::kListenOverflow) {
    for (Duration at{0}; at < kWatch; at += kBurstEvery) {
      for (std::size_t i = 0; i < kBurst; ++i) {
        add_connection(service, at + draw.about(microseconds(500)), 1, draw, plan);
      }
    }
    return;
  }
  const std::size_t clients = bulk ? 3 : service.fault == InjectedFault::kSlowAccept ? 5 : 6;
  for (std::size_t client = 0; client < clients; ++client) {
    std::size_t requests = 200;
    Duration every = kWatch;
    if (service.fault == InjectedFault::kSynLoss) {
      requests = 1;
      every = milliseconds(60);
    } else if (service.fault == InjectedFault::kSlowAccept) {
      requests = 6;
      every = milliseconds(220);
    } else if (bulk) {
      requests = 15;
    } else if (service.fault == InjectedFault::kSmallWrites) {
      requests = 10;
    } else if (service.fault == InjectedFault::kNone && seed % 3 == 0) {
      requests = 4;
      every = milliseconds(150);
    }
    for (Duration at = draw.about(milliseconds(10)); at < kWatch;
         at += every / 2 + draw.about(every / 2)) {
      add_connection(service, at, requests, draw, plan);
      if (every == kWatch) break;
    }
  }
}

}  // namespace

std::span<const InjectedFault> faults() {
  static constexpr auto kAll = [] {
    std::array<InjectedFault, kNames.size()> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = kNames[i].first;
    return all;
  }();
  return kAll;
}

std::string_view to_string(InjectedFault fault) {
  return kNames[static_cast<std::size_t>(fault)].second;
}

CapturePlan fault_plan(InjectedFault fault, std::uint64_t seed, CapturePlan::Capture capture) {
  Draw draw{Rng::stream(seed, 1000 + static_cast<std::uint64_t>(fault))};
  CapturePlan plan;
  plan.seed = seed;
  plan.capture = capture;
  plan.until = kWatch;
  Service service{.fault = fault};
  service.think = draw.within(microseconds(500), milliseconds(4));
  service.response = draw.bytes(200, 1200);
  const bool bulk = fault == InjectedFault::kSmallReceiveWindow ||
                    fault == InjectedFault::kSlowReader || fault == InjectedFault::kSmallSendBuffer;
  // Window and buffer hold back by round trips: there must be some.
  plan.link.delay = bulk ? draw.within(milliseconds(3), milliseconds(10))
                         : draw.within(microseconds(200), milliseconds(3));
  service.faulty_share = draw.rng.chance(0.5) ? 1 : draw.rng.uniform(0.1, 0.6);
  shape(service, draw, plan);
  if (service.upload > 100'000) service.rest = milliseconds(5);
  add_connections(service, seed, draw, plan);
  return plan;
}

}  // namespace tailward::sim_tcp
