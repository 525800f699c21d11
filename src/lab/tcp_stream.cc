// `nodelay-batch` and `buffers`: data in one direction, written in messages.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include "lab/tcp_run.h"
#include "net/real_clock.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kReadBytes = 65'536;
constexpr Duration kSteadyLeast = 200ms;

// Reads until the data ends, on a thread of its own.
class Sink {
 public:
  explicit Sink(net::BlockingSocket& from)
      : from_(from), began_(net::real_now()), last_(began_), thread_([this] { run(); }) {}
  ~Sink() { wait(); }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  void wait() {
    if (thread_.joinable()) thread_.join();
  }
  // REQUIRES: waited.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] TimePoint last() const { return last_; }  // when the last byte was read
  // MB/s from kSteadyFrom on; empty when that is too short to tell.
  [[nodiscard]] std::optional<double> steady() const {
    const Duration took = last_ - settled_at_;
    if (!settled_ || took < kSteadyLeast) return std::nullopt;
    return static_cast<double>(bytes_ - settled_bytes_) / 1e6 / to_seconds(took);
  }
  [[nodiscard]] const Result<std::size_t>& end() const { return end_; }

 private:
  void run() {
    std::vector<char> room(kReadBytes);
    for (;;) {
      end_ = from_.read_some(room);
      if (!end_ || *end_ == 0) return;
      last_ = net::real_now();
      bytes_ += *end_;
      if (!settled_ && last_ - began_ >= kSteadyFrom) {
        settled_ = true;
        settled_at_ = last_;
        settled_bytes_ = bytes_;
      }
    }
  }

  net::BlockingSocket& from_;
  std::uint64_t bytes_ = 0;
  TimePoint began_;
  TimePoint last_;
  bool settled_ = false;
  TimePoint settled_at_{};
  std::uint64_t settled_bytes_ = 0;
  Result<std::size_t> end_ = std::size_t{0};
  std::thread thread_;
};

struct StreamPlan {
  std::size_t message = 0;
  std::uint64_t messages_max = 0;
  Duration at_most{};
  net::BlockingOptions options = {};
  // Pinned after connecting, as programs mostly do, and as Go's SetWriteBuffer must.
  std::optional<int> buffers = {};
};

struct Stream {
  Duration took{};  // from before the first write until the last byte was read
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::optional<double> steady_mb_per_s;
  Duration smoothed_rtt{};
  int send_buffer = 0;
  int receive_buffer = 0;
  TcpCounts counts;
};

// Writes until all is written, the time is over, or Ctrl-C.
Result<std::uint64_t> write_messages(net::BlockingSocket& to, const StreamPlan& plan, TcpRun& run,
                                     TimePoint began) {
  const std::vector<char> message(plan.message);
  std::uint64_t written = 0;
  for (; written < plan.messages_max; ++written) {
    if (const Result<void> sent = to.write_all(message); !sent) return fail(sent.error());
    // A reading for each write would be a part of what is measured where writes are cheap.
    const bool look = written % 16 == 15 || plan.at_most > 0s;
    if (look && (!run.step(0) || net::real_now() - began > plan.at_most)) break;
  }
  return written;
}

Result<Stream> run_stream(TcpPlace& place, const StreamPlan& plan, TcpRun& run, bool counted) {
  Result<net::BlockingSocket> listener = place.listen(plan.options);
  if (!listener) return fail(listener.error());
  Result<std::unique_ptr<TcpWatch>> watch = std::unique_ptr<TcpWatch>();
  if (counted) watch = run.watch(place, listener->local().port);
  if (!watch) return fail(watch.error());
  Result<TcpPair> pair = place.connect(*listener, plan.options);
  if (!pair) return fail(pair.error());
  if (plan.buffers) {
    for (net::BlockingSocket* end : {&pair->client, &pair->server}) {
      end->set_send_buffer(*plan.buffers);
      end->set_receive_buffer(*plan.buffers);
    }
  }
  Stream stream;
  stream.send_buffer = pair->client.send_buffer();
  stream.receive_buffer = pair->server.receive_buffer();
  Sink sink(pair->server);
  const TimePoint began = net::real_now();
  const Result<std::uint64_t> written = write_messages(pair->client, plan, run, began);
  stream.smoothed_rtt = pair->client.figures().rtt;
  pair->client.shutdown_write();
  sink.wait();
  if (!written) return fail(written.error());
  if (!sink.end()) return fail(sink.end().error());
  stream.took = sink.last() - began;
  stream.messages = *written;
  stream.bytes = sink.bytes();
  stream.steady_mb_per_s = sink.steady();
  if (counted) {
    stream.counts = TcpRun::counts(std::move(*watch), pair->client);
    stream.counts.messages = stream.messages;
    stream.counts.bytes = stream.bytes;
    stream.counts.write_calls = pair->client.write_calls();
    stream.counts.read_calls = pair->server.read_calls();
  }
  return stream;
}

void record(const Stream& stream, TcpArm& arm) {
  arm.latency.record(stream.took);
  arm.medians.push_back(to_ms(stream.took));
  arm.mb_per_s.push_back(static_cast<double>(stream.bytes) / 1e6 / to_seconds(stream.took));
  if (stream.steady_mb_per_s) arm.steady_mb_per_s.push_back(*stream.steady_mb_per_s);
  arm.messages += stream.messages;
  arm.bytes += stream.bytes;
  arm.seconds += to_seconds(stream.took);
  arm.smoothed_rtt = stream.smoothed_rtt;
  arm.send_buffer = stream.send_buffer;
  arm.receive_buffer = stream.receive_buffer;
}

// ---- nodelay-batch ----------------------------------------------------------------------------

struct Batch {
  std::size_t size;
  std::uint64_t messages;
  double nodelay_ms;  // the article's
  double nagle_ms;
};
constexpr std::array<Batch, 3> kBatches{
    {{64, 10'000, 126.5, 41.3}, {512, 10'000, 121.9, 39.7}, {4096, 5'000, 42.7, 28.1}}};

StreamPlan batch_plan(const Batch& batch, bool nodelay) {
  StreamPlan plan{batch.size, batch.messages, 30s, tcp_options()};
  plan.options.nodelay = nodelay;
  return plan;
}

findings::Statement batch_verdict(std::span<const TcpArm> arms) {
  findings::Statement verdict;
  const TcpArm* nagle = find_arm(arms, "nagle", kBatches[0].size, 0ms);
  const TcpArm* nodelay = find_arm(arms, "nodelay", kBatches[0].size, 0ms);
  if (nagle == nullptr || nodelay == nullptr) return verdict;
  verdict.layer = findings::Layer::kCause;
  verdict.sentence = fmt::format(
      "A stream of 64-byte writes takes {:.1f} ms with NODELAY and {:.1f} ms with Nagle: {:.2f} "
      "and {:.2f} segments for each write.",
      nodelay->median_ms(), nagle->median_ms(), nodelay->counts.segments_per_message(),
      nagle->counts.segments_per_message());
  verdict.evidence = {{"the system calls are the same for both: Nagle saves segments, not calls"},
                      {"writing larger pieces from a buffer in the application saves both"}};
  return verdict;
}

// ---- buffers ----------------------------------------------------------------------------------

constexpr std::size_t kWriteBytes = 4096;
constexpr std::uint64_t kTransferBytes = 100'000'000;

struct Pinned {
  std::string_view option;
  std::optional<int> bytes;
  double article_mb_per_s;
};
constexpr std::array<Pinned, 5> kPinned{{{"default", std::nullopt, 578.3},
                                         {"8KiB", 8 << 10, 238.1},
                                         {"64KiB", 64 << 10, 321.7},
                                         {"256KiB", 256 << 10, 546.2},
                                         {"1MiB", 1 << 20, 557.7}}};

StreamPlan buffer_plan(const Pinned& pinned, Duration at_most) {
  StreamPlan plan{kWriteBytes, kTransferBytes / kWriteBytes, at_most, tcp_options()};
  plan.buffers = pinned.bytes;
  return plan;
}

findings::Statement buffer_verdict(std::span<const TcpArm> arms) {
  findings::Statement verdict;
  const TcpArm* small = find_arm(arms, "8KiB", kWriteBytes, 0ms);
  const TcpArm* free = find_arm(arms, "default", kWriteBytes, 0ms);
  if (small == nullptr || free == nullptr) return verdict;
  verdict.layer = findings::Layer::kCause;
  verdict.sentence = fmt::format(
      "Buffers pinned at 8 KiB carry {:.3g} MB/s on loopback, the kernel's own {:.0f} MB/s.",
      small->throughput(), free->throughput());
  verdict.evidence = {
      {fmt::format(
          "of {} writes at 8 KiB on loopback, {} waited for a timer of the sender's kernel, "
          "200 ms each, {} ACKs were delayed and the window closed {} times: a window "
          "smaller than one segment of loopback is not written into at once",
          small->counts.messages, small->counts.timer_waits, small->counts.delayed_acks,
          small->counts.zero_windows)},
      {"with round-trip time a pinned buffer is a limit: one window in each round trip"},
      {"leaving the sizes to the kernel brings its autotuning back"}};
  return verdict;
}

}  // namespace

Result<ExperimentResult> run_nodelay_batch(Context& context) {
  const std::uint64_t pairs = (context.quick ? 9U : 25U) * static_cast<unsigned>(context.runs);
  TcpRun run(context, kBatches.size() * pairs);
  Result<std::vector<TcpPlace>> places = run.places({0ms});
  if (!places) return fail(places.error());
  TcpPlace& place = places->front();
  std::vector<TcpArm> arms;
  for (const Batch& batch : kBatches) {
    for (const bool nodelay : {true, false}) {
      TcpArm arm;
      arm.option = nodelay ? "nodelay" : "nagle";
      arm.size = batch.size;
      arm.name = tcp_arm_name(arm.option, batch.size, std::nullopt);
      arm.article.median_ms = nodelay ? batch.nodelay_ms : batch.nagle_ms;
      arms.push_back(std::move(arm));
    }
  }
  for (std::size_t at = 0; at < kBatches.size(); ++at) {
    const Batch& batch = kBatches[at];
    run.begin(fmt::format("{} B × {}", batch.size, batch.messages));
    // One more than counts: the first of each warms up.
    for (std::uint64_t pair = 0; pair <= pairs && !run.stopped(); ++pair) {
      for (const std::size_t turn : {0U, 1U}) {
        const std::size_t option = (turn + pair) % 2;  // who goes first changes
        Result<Stream> stream = run_stream(place, batch_plan(batch, option == 0), run, false);
        if (!stream) return fail(stream.error());
        if (pair > 0 && !run.stopped()) record(*stream, arms[at * 2 + option]);
      }
      if (pair > 0) run.step();
    }
    for (const std::size_t option : {0U, 1U}) {
      if (run.stopped()) break;
      Result<Stream> stream = run_stream(place, batch_plan(batch, option == 0), run, true);
      if (!stream) return fail(stream.error());
      arms[at * 2 + option].counts = stream->counts;
    }
  }
  ExperimentResult result = run.finish(std::move(arms));
  result.verdict = batch_verdict(result.tcp);
  result.checks = batch_checks(result.tcp);
  return result;
}

Result<ExperimentResult> run_buffers(Context& context) {
  const Duration at_most = context.quick ? 2s : 4s;
  const Duration counted_for = 1s;
  const std::vector<Duration> rtts{0ms, 1ms, 10ms};
  const auto runs = static_cast<std::uint64_t>(context.runs);
  TcpRun run(context, rtts.size() * kPinned.size() * (runs + 1));
  Result<std::vector<TcpPlace>> places = run.places(rtts, true);
  if (!places) return fail(places.error());
  std::vector<TcpArm> arms(places->size() * kPinned.size());
  // The last round counts packets, for a part of the time.
  for (std::uint64_t round = 0; round <= runs; ++round) {
    const bool counted = round == runs;
    for (std::size_t i = 0; i < arms.size() && !run.stopped(); ++i) {
      TcpPlace& place = (*places)[i / kPinned.size()];
      const Pinned& pinned = kPinned[i % kPinned.size()];
      TcpArm& arm = arms[i];
      arm.option = pinned.option;
      arm.size = kWriteBytes;
      arm.rtt = place.rtt();
      arm.name = tcp_arm_name(arm.option, 0, arm.rtt);
      if (arm.rtt == 0ms) arm.article.mb_per_s = pinned.article_mb_per_s;
      run.begin("arm " + arm.name);
      run.step(0);
      const StreamPlan plan = buffer_plan(pinned, counted ? counted_for : at_most);
      Result<Stream> stream = run_stream(place, plan, run, counted);
      if (!stream) return fail(stream.error().in("arm " + arm.name));
      if (counted) {
        arm.counts = stream->counts;
      } else {
        record(*stream, arm);
      }
      run.step();
    }
  }
  ExperimentResult result = run.finish(std::move(arms));
  result.verdict = buffer_verdict(result.tcp);
  result.checks = buffer_checks(result.tcp);
  return result;
}

}  // namespace tailward::lab
