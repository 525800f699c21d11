#include "faults/faulty_server.h"

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faults/server_process.h"
#include "http/codec.h"
#include "net/loop.h"

namespace tailward::faults {
namespace {

using diag::Cause;
using std::chrono::milliseconds;

// Bytes, as asked for. The kernel doubles it; even so it is a fraction of the 100 KiB and more that
// one request or response of these faults carries.
constexpr int kSmallBuffer = 8 * 1024;
constexpr std::size_t kSmallWrite = 64;  // bytes: 500 to 1500 segments for one response
// Bytes at a time, with a rest after each: 3 MB/s, so that an upload of 1 MB takes a third of a
// second.
constexpr std::size_t kSlowRead = 24 * 1024;
constexpr Duration kSlowReadRest = milliseconds(8);
// Of the slow reader. Larger than kSmallBuffer, so that the window is not the fault, and smaller
// than an upload: the kernel's own buffer might take all of it, and no client would wait.
constexpr int kAmpleBuffer = 192 * 1024;
// How long the acceptor does something else after each accept: as the fault itself, and, shorter,
// so that a burst finds the accept queue full.
constexpr Duration kAcceptRest = milliseconds(25);
constexpr Duration kBurstAcceptRest = milliseconds(8);
constexpr Duration kIdleMax = std::chrono::seconds(30);

int sized(int bytes, double severity) {
  return static_cast<int>(static_cast<double>(bytes) / std::max(0.1, severity));
}

net::BlockingOptions options_of(const FaultModel& model) {
  net::BlockingOptions options;
  options.timeout = kIdleMax;
  options.congestion = "cubic";  // the same everywhere, whatever this machine is set to
  options.nodelay = model.cause != Cause::kNagleDelayedAck;
  if (model.cause == Cause::kSmallSendBuffer)
    options.send_buffer = sized(kSmallBuffer, model.severity);
  if (model.cause == Cause::kSmallReceiveWindow)
    options.receive_buffer = sized(kSmallBuffer, model.severity);
  if (model.cause == Cause::kSlowReader) options.receive_buffer = kAmpleBuffer;
  return options;
}

// A queue of 2 holds 3 connections: the kernel refuses only above the backlog.
int backlog_of(const FaultModel& model) { return model.cause == Cause::kListenOverflow ? 2 : 1024; }

}  // namespace

// Reads the requests of one connection and responds to each, one after another.
class FaultyServer::RequestHandler : public http::Sink<http::Request> {
 public:
  RequestHandler(const FaultModel& model, ServedConnection& connection, Pause& pause)
      : model_(model), socket_(connection.socket), rng_(connection.rng), pause_(pause) {}

  void serve() {
    http::RequestParser parser(*this);
    std::vector<char> buffer(kSlowRead);
    while (!pause_.ended()) {
      const Result<std::size_t> got = socket_.read_some(buffer);
      if (!got || *got == 0) return;
      std::span<const char> left(buffer.data(), *got);
      while (!left.empty()) {
        const Result<std::size_t> taken = parser.feed(left);
        if (!taken) return;
        left = left.subspan(*taken);
        if (!parser.done()) continue;
        if (!respond()) return;
        parser.reset();
      }
      if (slow_read_ && !pause_.wait(kSlowReadRest)) return;
    }
  }

  void on_head(http::Request&& head) override {
    slow_read_ = model_.cause == Cause::kSlowReader && head.method == "POST" && faulty();
  }
  void on_body(std::span<const char>) override {}
  void on_end() override { slow_read_ = false; }

 private:
  bool faulty() { return rng_.chance(model_.faulty_share); }

  // Mostly near the median. A few requests take long in the program itself, as in any service:
  // diagnosis must not blame the network for them.
  Duration processing_time() {
    constexpr double kLongShare = 0.03;
    const double median = static_cast<double>(model_.processing.count());
    const double factor =
        rng_.chance(kLongShare) ? rng_.uniform(8, 20) : std::exp(rng_.normal() * 0.4);
    return Duration{static_cast<std::int64_t>(median * factor)};
  }

  bool respond() {
    if (!pause_.wait(processing_time())) return false;
    http::Response response;
    response.reason = "OK";
    response.body = http::BodyKind::kLength;
    response.content_length = model_.response_bytes;
    std::string head;
    http::append_head(head, response);
    const std::string body(model_.response_bytes, 'x');
    const bool is_faulty = faulty();
    if (is_faulty && model_.cause == Cause::kNagleDelayedAck) {
      return socket_.write_all(head) && socket_.write_all(body);
    }
    if (is_faulty && model_.cause == Cause::kSmallWrites) return write_small(head + body);
    if (model_.cause == Cause::kCorked) socket_.set_cork(is_faulty);
    return static_cast<bool>(socket_.write_all(head + body));
  }

  bool write_small(const std::string& text) {
    for (std::size_t at = 0; at < text.size(); at += kSmallWrite) {
      const std::span<const char> piece(text.data() + at, std::min(kSmallWrite, text.size() - at));
      if (!socket_.write_all(piece)) return false;
    }
    return true;
  }

  const FaultModel& model_;
  net::BlockingSocket& socket_;
  Rng& rng_;
  Pause& pause_;
  bool slow_read_ = false;
};

Result<std::unique_ptr<FaultyServer>> FaultyServer::start(const FaultModel& model,
                                                          const io::HostPort& at) {
  Result<net::BlockingSocket> listener =
      net::BlockingSocket::listen(at, options_of(model), backlog_of(model));
  if (!listener) return fail(listener.error());
  std::unique_ptr<FaultyServer> server(new FaultyServer(model, std::move(*listener)));
  server->listener_.set_timeout(std::chrono::hours(24));
  server->acceptor_ = std::thread([raw = server.get()] { raw->accept_all(); });
  return server;
}

FaultyServer::~FaultyServer() {
  pause_.end();
  listener_.interrupt();
  acceptor_.join();
  for (ServedConnection& connection : connections_) connection.socket.interrupt();
  for (ServedConnection& connection : connections_) connection.thread.join();
}

void FaultyServer::accept_all() {
  for (std::uint64_t number = 1; !pause_.ended(); ++number) {
    Result<net::BlockingSocket> accepted = listener_.accept();
    if (!accepted) {
      if (accepted.error().kind == ErrorKind::kCancelled) return;
      if (!pause_.wait(milliseconds(10))) return;
      continue;
    }
    clear_finished();
    accepted->set_timeout(kIdleMax);
    ServedConnection& connection =
        connections_.emplace_back(std::move(*accepted), Rng::stream(model_.seed, number));
    connection.thread = std::thread([this, &connection] {
      RequestHandler(model_, connection, pause_).serve();
      connection.socket.shutdown_write();
      connection.done = true;
    });
    const Duration rest = model_.cause == Cause::kSlowAccept       ? kAcceptRest
                          : model_.cause == Cause::kListenOverflow ? kBurstAcceptRest
                                                                   : Duration{0};
    if (rest > Duration{0} && !pause_.wait(rest)) return;
  }
}

void FaultyServer::clear_finished() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    if (!at->done) {
      ++at;
      continue;
    }
    at->thread.join();
    at = connections_.erase(at);
  }
}

int run_faulty_server(const FaultModel& model, const io::HostPort& at) {
  const Result<std::unique_ptr<FaultyServer>> server = FaultyServer::start(model, at);
  if (!server) {
    std::fprintf(stderr, "tailward: %s\n", server.error().message.c_str());
    return 2;
  }
  std::printf("port %u\n", static_cast<unsigned>((*server)->port()));
  std::fflush(stdout);
  net::Loop loop;
  const ParentWatch parent([&loop] { loop.stop(); });
  const auto signals = loop.on_signals({SIGINT, SIGTERM}, [&loop](int) { loop.stop(); });
  loop.run();
  return 0;
}

}  // namespace tailward::faults
