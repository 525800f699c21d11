#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>

#include "http/codec.h"
#include "lab/process.h"
#include "lab/sick.h"
#include "net/loop.h"

namespace tailward::lab {
namespace {

using diag::Cause;
using std::chrono::milliseconds;

constexpr int kSmallBuffer = 8 * 1024;        // bytes, as asked for: the kernel doubles it
constexpr std::size_t kSmallWrite = 64;       // bytes
constexpr std::size_t kSlowRead = 24 * 1024;  // bytes at a time, with a rest after each
constexpr Duration kSlowReadRest = milliseconds(8);
// Large, and yet one that an upload fills: the kernel's own might take all of it.
constexpr int kAmpleBuffer = 192 * 1024;
constexpr Duration kAcceptRest = milliseconds(25);  // of an acceptor that does other things
constexpr Duration kBurstAcceptRest = milliseconds(8);
constexpr Duration kIdleMax = std::chrono::seconds(30);

int sized(int bytes, double severity) {
  return static_cast<int>(static_cast<double>(bytes) / std::max(0.1, severity));
}

net::BlockingOptions options_of(const SickModel& model) {
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

int backlog_of(const SickModel& model) { return model.cause == Cause::kListenOverflow ? 2 : 1024; }

}  // namespace

// The requests of one connection, one after another.
class SickServer::Exchange : public http::Sink<http::Request> {
 public:
  Exchange(const SickModel& model, Connection& connection, Pause& pause)
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
        if (!answer()) return;
        parser.reset();
      }
      if (slow_read_ && !pause_.wait(kSlowReadRest)) return;
    }
  }

  void on_head(http::Request&& head) override {
    slow_read_ = model_.cause == Cause::kSlowReader && head.method == "POST" && sick();
  }
  void on_body(std::span<const char>) override {}
  void on_end() override { slow_read_ = false; }

 private:
  bool sick() { return rng_.chance(model_.sick_share); }

  // Mostly about the median; a few requests take long in the program itself, as everywhere.
  Duration think() {
    constexpr double kLongShare = 0.03;
    const double median = static_cast<double>(model_.think.count());
    const double factor =
        rng_.chance(kLongShare) ? rng_.uniform(8, 20) : std::exp(rng_.normal() * 0.4);
    return Duration{static_cast<std::int64_t>(median * factor)};
  }

  bool answer() {
    if (!pause_.wait(think())) return false;
    http::Response response;
    response.reason = "OK";
    response.body = http::BodyKind::kLength;
    response.content_length = model_.answer_bytes;
    std::string head;
    http::append_head(head, response);
    const std::string body(model_.answer_bytes, 'x');
    const bool is_sick = sick();
    if (is_sick && model_.cause == Cause::kNagleDelayedAck) {
      return socket_.write_all(head) && socket_.write_all(body);
    }
    if (is_sick && model_.cause == Cause::kSmallWrites) return write_small(head + body);
    if (model_.cause == Cause::kCorked) socket_.set_cork(is_sick);
    return static_cast<bool>(socket_.write_all(head + body));
  }

  bool write_small(const std::string& text) {
    for (std::size_t at = 0; at < text.size(); at += kSmallWrite) {
      const std::span<const char> piece(text.data() + at, std::min(kSmallWrite, text.size() - at));
      if (!socket_.write_all(piece)) return false;
    }
    return true;
  }

  const SickModel& model_;
  net::BlockingSocket& socket_;
  Rng& rng_;
  Pause& pause_;
  bool slow_read_ = false;
};

Result<std::unique_ptr<SickServer>> SickServer::start(const SickModel& model,
                                                      const io::HostPort& at) {
  Result<net::BlockingSocket> listener =
      net::BlockingSocket::listen(at, options_of(model), backlog_of(model));
  if (!listener) return fail(listener.error());
  std::unique_ptr<SickServer> server(new SickServer(model, std::move(*listener)));
  server->listener_.set_timeout(std::chrono::hours(24));
  server->acceptor_ = std::thread([raw = server.get()] { raw->accept_all(); });
  return server;
}

SickServer::~SickServer() {
  pause_.end();
  listener_.interrupt();
  acceptor_.join();
  for (Connection& connection : connections_) connection.socket.interrupt();
  for (Connection& connection : connections_) connection.thread.join();
}

void SickServer::accept_all() {
  for (std::uint64_t number = 1; !pause_.ended(); ++number) {
    Result<net::BlockingSocket> accepted = listener_.accept();
    if (!accepted) {
      if (accepted.error().kind == ErrorKind::kCancelled) return;
      if (!pause_.wait(milliseconds(10))) return;
      continue;
    }
    clear_finished();
    accepted->set_timeout(kIdleMax);
    Connection& connection =
        connections_.emplace_back(std::move(*accepted), Rng::stream(model_.seed, number));
    connection.thread = std::thread([this, &connection] {
      Exchange(model_, connection, pause_).serve();
      connection.socket.shutdown_write();
      connection.done = true;
    });
    const Duration rest = model_.cause == Cause::kSlowAccept       ? kAcceptRest
                          : model_.cause == Cause::kListenOverflow ? kBurstAcceptRest
                                                                   : Duration{0};
    if (rest > Duration{0} && !pause_.wait(rest)) return;
  }
}

void SickServer::clear_finished() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    if (!at->done) {
      ++at;
      continue;
    }
    at->thread.join();
    at = connections_.erase(at);
  }
}

int run_sick_server(const SickModel& model, const io::HostPort& at) {
  const Result<std::unique_ptr<SickServer>> server = SickServer::start(model, at);
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

}  // namespace tailward::lab
