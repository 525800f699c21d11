#include "sim_tcp/exchange.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <optional>
#include <queue>
#include <span>
#include <tuple>
#include <utility>

#include "base/rng.h"
#include "net/link_queue.h"
#include "sim_tcp/endpoint.h"
#include "tcp/sequence.h"

namespace tailward::sim_tcp {
namespace {

// LinkQueue takes packets as bytes, to know a SYN and to divide by the rate: the segment travels
// before a header that says as much.
constexpr std::size_t kIpHeader = 20;
constexpr std::size_t kTcpHeader = 32;  // with time stamps
constexpr std::size_t kFlagsAt = kIpHeader + 13;
constexpr char kSynFlag = 0x02;
constexpr Duration kEpoch = std::chrono::seconds(1'700'000'000);  // of the captures' clock
constexpr std::uint16_t kServerPort = 80;
constexpr std::uint16_t kClientPorts = 32'768;

tcp::SocketAddress address(std::uint8_t last, std::uint16_t port) {
  tcp::SocketAddress made;
  made.address.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 18, 0, last};
  made.port = port;
  return made;
}

void pack(const tcp::Segment& segment, std::vector<char>& bytes) {
  bytes.assign(sizeof segment + kIpHeader + kTcpHeader + segment.payload, 0);
  std::memcpy(bytes.data(), &segment, sizeof segment);
  char* ip = bytes.data() + sizeof segment;
  ip[0] = 0x45;
  ip[9] = 6;
  ip[kFlagsAt] = segment.syn ? kSynFlag : '\0';
}

tcp::Segment unpack(std::span<const char> bytes) {
  tcp::Segment segment;
  std::memcpy(&segment, bytes.data(), sizeof segment);
  return segment;
}

// A script under way, at one end of one connection.
struct Program {
  const Script* script = nullptr;
  std::size_t step = 0;
  std::uint64_t done = 0;  // bytes of the step
  bool blocked = false;    // a writer: until a third of the buffer is free
  bool running = false;
  bool scheduled = false;
  [[nodiscard]] bool over() const { return step == script->size(); }
};

struct VirtualConnection {
  std::array<std::optional<Endpoint>, 2> ends;
  std::array<Program, 2> programs;
  std::array<TimePoint, 2> timer{kNever, kNever};  // the earliest event that is scheduled
  bool queued = false;                             // waits to be accepted, or has been
};

class Runner {
 public:
  explicit Runner(const CapturePlan& plan);
  Recording run();

 private:
  enum class What : std::uint8_t { kConnect, kTimer, kProgram, kArrival, kAccept };
  struct Event {
    TimePoint at;
    std::uint64_t order = 0;
    What what{};
    tcp::Side side = tcp::kClient;  // of an arrival: who sent
    std::size_t index = 0;          // of the connection; of an arrival: the hop
    bool operator<(const Event& other) const {
      return std::tie(at, order) > std::tie(other.at, other.order);
    }
  };

  void schedule(TimePoint at, What what, tcp::Side side, std::size_t index);
  void handle(const Event& event);
  void connect(std::size_t index);
  void fire(std::size_t index, tcp::Side side);
  void arrive(tcp::Side from, std::size_t hop);
  void expect_arrival(tcp::Side from, std::size_t hop);
  void deliver(tcp::Side from, const tcp::Segment& segment);
  void accept();
  void act(std::size_t index, tcp::Side side);
  bool take_step(VirtualConnection& connection, tcp::Side side, Duration& pause);
  void wake(std::size_t index, tcp::Side side, Duration after);
  void settle(std::size_t index, tcp::Side side);
  void enter(tcp::Side from, std::size_t hop, const tcp::Segment& segment);
  void capture(tcp::Segment segment);
  [[nodiscard]] bool room() const { return waiting_.size() <= plan_.backlog; }

  const CapturePlan& plan_;
  Rng rng_;
  TimePoint now_{};
  std::uint64_t order_ = 0;
  std::priority_queue<Event> events_;
  std::array<Ticks, 2> ticks_;
  std::array<Duration, 2> clocks_{};
  std::vector<VirtualConnection> connections_;
  std::deque<std::size_t> waiting_;                  // to be accepted
  bool accepting_ = false;                           // an accept() is scheduled
  std::array<std::vector<net::LinkQueue>, 2> hops_;  // by who sends
  // The earliest arrival that is scheduled, by who sends and hop.
  std::array<std::array<TimePoint, 2>, 2> arrival_{{{kNever, kNever}, {kNever, kNever}}};
  std::vector<char> packet_;
  Recording recording_;
};

Runner::Runner(const CapturePlan& plan) : plan_(plan), rng_(Rng::stream(plan.seed, 0)) {
  for (const tcp::Side side : {tcp::kClient, tcp::kServer}) {
    ticks_[side].phase = Duration{static_cast<std::int64_t>(rng_.below(4'000'000))};
    clocks_[side] = std::chrono::milliseconds(1 + rng_.below(1'000'000'000));
    // A capture in the middle of the way divides it.
    const bool divided = plan.capture == CapturePlan::Capture::kBetween;
    net::LinkShape shape = plan.link;
    if (divided) {
      shape.delay /= 2;
      shape.loss /= 2;
      shape.syn_loss /= 2;
    }
    for (std::size_t hop = 0; hop < (divided ? 2u : 1u); ++hop) {
      hops_[side].emplace_back(shape, Rng::stream(plan.seed, 1 + 2 * hop + side),
                               sizeof(tcp::Segment));
    }
  }
  connections_.resize(plan.connections.size());
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    connections_[i].programs[tcp::kClient].script = &plan.connections[i].client;
    connections_[i].programs[tcp::kServer].script = &plan.connections[i].server;
    schedule(TimePoint{plan.connections[i].begins}, What::kConnect, tcp::kClient, i);
  }
}

void Runner::schedule(TimePoint at, What what, tcp::Side side, std::size_t index) {
  events_.push({std::max(at, now_), order_++, what, side, index});
}

Recording Runner::run() {
  while (!events_.empty()) {
    const Event event = events_.top();
    if (event.at > TimePoint{plan_.until}) break;
    events_.pop();
    now_ = event.at;
    handle(event);
  }
  for (const auto& way : hops_) {
    for (const net::LinkQueue& hop : way) {
      recording_.lost += hop.counters().lost + hop.counters().syns_lost;
    }
  }
  return std::move(recording_);
}

void Runner::handle(const Event& event) {
  switch (event.what) {
    case What::kConnect:
      connect(event.index);
      break;
    case What::kTimer:
      fire(event.index, event.side);
      break;
    case What::kProgram:
      act(event.index, event.side);
      break;
    case What::kArrival:
      arrive(event.side, event.index);
      break;
    case What::kAccept:
      accept();
      break;
  }
}

void Runner::connect(std::size_t index) {
  const auto port = static_cast<std::uint16_t>(kClientPorts + index);
  connections_[index].ends[tcp::kClient].emplace(
      Endpoint::Identity{address(1, port), address(2, kServerPort), clocks_[tcp::kClient]},
      plan_.client, ticks_[tcp::kClient], rng_);
  connections_[index].ends[tcp::kClient]->connect(now_);
  settle(index, tcp::kClient);
}

void Runner::fire(std::size_t index, tcp::Side side) {
  VirtualConnection& connection = connections_[index];
  if (connection.timer[side] != now_) return;  // another event was scheduled for an earlier time
  connection.timer[side] = kNever;
  if (connection.ends[side]->deadline() <= now_) connection.ends[side]->on_timer(now_);
  settle(index, side);
}

// What an endpoint has made of the last call: segments, a timer, work for its program.
void Runner::settle(std::size_t index, tcp::Side side) {
  VirtualConnection& connection = connections_[index];
  Endpoint& end = *connection.ends[side];
  for (const tcp::Segment& segment : end.outbox()) enter(side, 0, segment);
  end.outbox().clear();
  const TimePoint deadline = end.deadline();
  if (deadline < connection.timer[side]) {
    connection.timer[side] = deadline;
    schedule(deadline, What::kTimer, side, index);
  }
  Program& program = connection.programs[side];
  if (side == tcp::kClient && end.open() && !program.running) {
    program.running = true;
    wake(index, side, plan_.system_call);
  }
  if (!program.running || program.over() || program.scheduled) return;
  const ScriptStep& step = (*program.script)[program.step];
  const bool can_read = step.kind == ScriptStep::Kind::kRead && end.readable() > 0;
  const bool can_write = step.kind == ScriptStep::Kind::kWrite && program.blocked && end.writable();
  if (can_read || can_write) wake(index, side, plan_.system_call);
}

void Runner::wake(std::size_t index, tcp::Side side, Duration after) {
  connections_[index].programs[side].scheduled = true;
  schedule(now_ + after, What::kProgram, side, index);
}

// One system call. False: the program is blocked.
bool Runner::take_step(VirtualConnection& connection, tcp::Side side, Duration& pause) {
  Program& program = connection.programs[side];
  Endpoint& end = *connection.ends[side];
  const ScriptStep& step = (*program.script)[program.step];
  pause = plan_.system_call;
  switch (step.kind) {
    case ScriptStep::Kind::kWrite:
      program.done += end.write(step.bytes - program.done, now_);
      program.blocked = program.done < step.bytes;
      if (program.blocked) return false;
      break;
    case ScriptStep::Kind::kRead: {
      const std::uint64_t got = std::min({end.readable(), step.chunk, step.bytes - program.done});
      if (got == 0 && step.bytes > 0) return false;
      end.read(got, now_);
      program.done += got;
      pause += step.length;
      if (program.done < step.bytes) return true;
      break;
    }
    case ScriptStep::Kind::kWait:
      pause = step.length;
      break;
    case ScriptStep::Kind::kCork:
    case ScriptStep::Kind::kUncork:
      end.set_cork(step.kind == ScriptStep::Kind::kCork, now_);
      break;
    case ScriptStep::Kind::kClose:
      end.close(now_);
      break;
  }
  ++program.step;
  program.done = 0;
  return true;
}

void Runner::act(std::size_t index, tcp::Side side) {
  VirtualConnection& connection = connections_[index];
  Program& program = connection.programs[side];
  program.scheduled = false;
  if (program.over()) return;
  Duration pause{};
  const bool going = take_step(connection, side, pause);
  if (program.over()) {
    ++recording_.scripts_done;
    recording_.length = now_.time_since_epoch();
  } else if (going) {
    wake(index, side, pause);
  }
  settle(index, side);
}

void Runner::enter(tcp::Side from, std::size_t hop, const tcp::Segment& segment) {
  const bool at_sender = (from == tcp::kServer && plan_.capture == CapturePlan::Capture::kServer) ||
                         (from == tcp::kClient && plan_.capture == CapturePlan::Capture::kClient);
  if (at_sender || (hop == 1 && plan_.capture == CapturePlan::Capture::kBetween)) capture(segment);
  net::LinkQueue& queue = hops_[from][hop];
  pack(segment, packet_);
  queue.offer(packet_, now_);
  expect_arrival(from, hop);
}

void Runner::expect_arrival(tcp::Side from, std::size_t hop) {
  const TimePoint due = hops_[from][hop].next_due();
  if (due >= arrival_[from][hop]) return;
  arrival_[from][hop] = due;
  schedule(due, What::kArrival, from, hop);
}

void Runner::arrive(tcp::Side from, std::size_t hop) {
  if (arrival_[from][hop] != now_) return;  // another event was scheduled for an earlier time
  arrival_[from][hop] = kNever;
  net::LinkQueue& queue = hops_[from][hop];
  for (auto bytes = queue.due(now_); !bytes.empty(); bytes = queue.due(now_)) {
    const tcp::Segment segment = unpack(bytes);
    queue.pop();
    if (hop + 1 < hops_[from].size()) {
      enter(from, hop + 1, segment);
    } else {
      deliver(from, segment);
    }
  }
  expect_arrival(from, hop);
}

void Runner::deliver(tcp::Side from, const tcp::Segment& segment) {
  const tcp::Side to = tcp::other(from);
  const bool at_receiver = (to == tcp::kServer && plan_.capture == CapturePlan::Capture::kServer) ||
                           (to == tcp::kClient && plan_.capture == CapturePlan::Capture::kClient);
  if (at_receiver) capture(segment);
  const std::uint16_t port = (from == tcp::kClient ? segment.from : segment.to).port;
  const std::size_t index = port - kClientPorts;
  VirtualConnection& connection = connections_[index];
  if (to == tcp::kServer && !connection.ends[to]) {
    if (!segment.syn) return;
    if (!room()) {
      ++recording_.overflows;
      return;
    }
    connection.ends[to].emplace(Endpoint::Identity{segment.to, segment.from, clocks_[to]},
                                plan_.server, ticks_[to], rng_);
    connection.ends[to]->answer_syn(segment, now_);
    settle(index, to);
    return;
  }
  Endpoint& end = *connection.ends[to];
  const bool admitted = to == tcp::kClient || connection.queued || room();
  if (!admitted && !end.open() && !segment.syn) ++recording_.overflows;
  end.on_segment(segment, now_, admitted);
  if (to == tcp::kServer && end.open() && !connection.queued) {
    connection.queued = true;
    waiting_.push_back(index);
    if (!std::exchange(accepting_, true)) {
      schedule(now_ + plan_.system_call, What::kAccept, to, index);
    }
  }
  settle(index, to);
}

void Runner::accept() {
  accepting_ = !waiting_.empty();
  if (waiting_.empty()) return;
  const std::size_t index = waiting_.front();
  waiting_.pop_front();
  connections_[index].programs[tcp::kServer].running = true;
  wake(index, tcp::kServer, plan_.system_call);
  // The acceptor rests also when nobody waits yet.
  schedule(now_ + plan_.accept_rest + plan_.system_call, What::kAccept, tcp::kServer, index);
}

void Runner::capture(tcp::Segment segment) {
  segment.at = kEpoch + now_.time_since_epoch();
  segment.number = recording_.segments.size() + 1;
  recording_.segments.push_back(segment);
}

}  // namespace

Recording run(const CapturePlan& plan) { return Runner(plan).run(); }

}  // namespace tailward::sim_tcp
