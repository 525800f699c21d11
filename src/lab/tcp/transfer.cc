#include "lab/tcp/transfer.h"

#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "net/real_clock.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kReadBytes = 65'536;
constexpr Duration kSteadyLeast = 200ms;  // one retransmission timeout: shorter says nothing

// Reads until the data ends, on a thread of its own.
class Reader {
 public:
  explicit Reader(net::BlockingSocket& from)
      : from_(from), began_(net::real_now()), last_(began_), thread_([this] { run(); }) {}
  ~Reader() { wait(); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void wait() {
    if (thread_.joinable()) thread_.join();
  }
  // REQUIRES (of the following): wait() has returned.
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

// Writes until all is written, the time is over, or Ctrl-C.
Result<std::uint64_t> write_messages(net::BlockingSocket& to, const TransferPlan& plan, TcpRun& run,
                                     TimePoint began) {
  const std::vector<char> message(plan.message);
  std::uint64_t written = 0;
  for (; written < plan.messages_max; ++written) {
    if (const Result<void> sent = to.write_all(message); !sent) return fail(sent.error());
    // Reading the clock for each write would cost as much as a cheap write.
    const bool look = written % 16 == 15 || plan.at_most > 0s;
    if (look && (!run.step(0) || net::real_now() - began > plan.at_most)) break;
  }
  return written;
}

}  // namespace

Result<Transfer> run_transfer(TcpPlace& place, const TransferPlan& plan, TcpRun& run,
                              bool counted) {
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
  Transfer transfer;
  transfer.send_buffer = pair->client.send_buffer();
  transfer.receive_buffer = pair->server.receive_buffer();
  Reader reader(pair->server);
  const TimePoint began = net::real_now();
  const Result<std::uint64_t> written = write_messages(pair->client, plan, run, began);
  transfer.smoothed_rtt = pair->client.figures().rtt;
  pair->client.shutdown_write();
  reader.wait();
  if (!written) return fail(written.error());
  if (!reader.end()) return fail(reader.end().error());
  transfer.took = reader.last() - began;
  transfer.messages = *written;
  transfer.bytes = reader.bytes();
  transfer.steady_mb_per_s = reader.steady();
  if (counted) {
    transfer.counts = TcpRun::counts(std::move(*watch), pair->client);
    transfer.counts.messages = transfer.messages;
    transfer.counts.bytes = transfer.bytes;
    transfer.counts.write_calls = pair->client.write_calls();
    transfer.counts.read_calls = pair->server.read_calls();
  }
  return transfer;
}

void record(const Transfer& transfer, TcpArm& arm) {
  arm.latency.record(transfer.took);
  arm.medians.push_back(to_ms(transfer.took));
  arm.mb_per_s.push_back(static_cast<double>(transfer.bytes) / 1e6 / to_seconds(transfer.took));
  if (transfer.steady_mb_per_s) arm.steady_mb_per_s.push_back(*transfer.steady_mb_per_s);
  arm.messages += transfer.messages;
  arm.bytes += transfer.bytes;
  arm.seconds += to_seconds(transfer.took);
  arm.smoothed_rtt = transfer.smoothed_rtt;
  arm.send_buffer = transfer.send_buffer;
  arm.receive_buffer = transfer.receive_buffer;
}

}  // namespace tailward::lab
