#include "faults/fault_clients.h"

#include <algorithm>
#include <span>
#include <utility>

#include "http/codec.h"
#include "net/blocking_socket.h"

namespace tailward::faults {
namespace {

using diag::Cause;
using std::chrono::milliseconds;

// A connect waits in steps of 200 ms, so that it notices a stop, and for 6 s in all: a lost SYN is
// sent again after 1 s and after 3 s (RFC 6298, 2 and 5.5).
constexpr Duration kConnectLook = milliseconds(200);
constexpr int kConnectLooks = 30;
constexpr Duration kResponseMax = std::chrono::seconds(20);

bool comes_in_bursts(Cause cause) { return cause == Cause::kListenOverflow; }

std::size_t clients_of(const FaultModel& model) {
  switch (model.cause) {
    case Cause::kListenOverflow:
      return 12;
    case Cause::kSlowAccept:
      return 5;
    case Cause::kSlowReader:
    case Cause::kSmallSendBuffer:
    case Cause::kSmallReceiveWindow:
      return 3;
    default:
      return 6;
  }
}

// How many requests a connection carries; 0: no limit.
std::size_t requests_of(const FaultModel& model) {
  switch (model.cause) {
    case Cause::kSynLoss:
    case Cause::kListenOverflow:
      return 1;
    case Cause::kSlowAccept:
      return 6;
    case Cause::kSlowReader:
    case Cause::kSmallSendBuffer:
    case Cause::kSmallReceiveWindow:
      return model.seed % 3 == 0 ? 0 : 3;
    case Cause::kNone:
      return model.seed % 3 == 0 ? 4 : 0;
    default:
      return 0;
  }
}

// Sends one request after another on a connection, and waits for each response.
class BlockingHttpClient : public http::Sink<http::Response> {
 public:
  explicit BlockingHttpClient(net::BlockingSocket socket) : socket_(std::move(socket)) {}

  Result<void> request(const std::string& text) {
    if (Result<void> sent = socket_.write_all(text); !sent) return sent;
    parser_.reset();
    char buffer[16 * 1024];
    while (!parser_.done()) {
      const Result<std::size_t> got = socket_.read_some(buffer);
      if (!got) return fail(got.error());
      if (*got == 0) return parser_.feed_eof();
      const Result<std::size_t> taken = parser_.feed(std::span(buffer, *got));
      if (!taken) return fail(taken.error());
    }
    return {};
  }

  void on_head(http::Response&&) override {}
  void on_body(std::span<const char>) override {}
  void on_end() override {}

 private:
  net::BlockingSocket socket_;
  http::ResponseParser parser_{*this};
};

std::string request_of(const FaultModel& model, const io::HostPort& server) {
  http::Request request;
  request.method = model.upload_bytes > 0 ? "POST" : "GET";
  request.target = "/";
  request.fields.add("Host", io::to_string(server));
  if (model.upload_bytes > 0) {
    request.body = http::BodyKind::kLength;
    request.content_length = model.upload_bytes;
  }
  std::string text;
  http::append_head(text, request);
  return text + std::string(model.upload_bytes, 'u');
}

}  // namespace

FaultClients::FaultClients(const FaultModel& model, const io::HostPort& server)
    : model_(model), server_(server) {
  for (std::size_t number = 0; number < clients_of(model); ++number) {
    threads_.emplace_back([this, number] { run(number); });
  }
}

FaultClients::~FaultClients() {
  begin_stop();
  for (std::thread& thread : threads_) thread.join();
}

FaultClients::Counts FaultClients::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void FaultClients::begin_stop() {
  {
    const std::lock_guard lock(mutex_);
    pause_.end();
  }
  burst_.notify_all();
}

// In a burst all clients wait for the same event and then connect at once. The first one to wait
// starts it after kGather. A client that still waits for a response misses the burst.
bool FaultClients::wait_for_burst() {
  constexpr Duration kGather = milliseconds(120);
  std::unique_lock lock(mutex_);
  const std::uint64_t mine = bursts_;
  const bool first = waiting_++ == 0;
  const auto begun = [&] { return pause_.ended() || bursts_ != mine; };
  if (first) {
    static_cast<void>(burst_.wait_for(lock, kGather, begun));
    ++bursts_;
    waiting_ = 0;
    burst_.notify_all();
  } else {
    burst_.wait(lock, begun);
  }
  return !pause_.ended();
}

void FaultClients::run(std::size_t number) {
  Rng rng = Rng::stream(model_.seed, 1'000'000 + number);
  while (!pause_.ended()) {
    if (comes_in_bursts(model_.cause) && !wait_for_burst()) return;
    const bool good = visit(rng, requests_of(model_));
    Duration rest{static_cast<std::int64_t>(rng.exponential(10e6))};
    if (!good) rest = std::max<Duration>(rest, milliseconds(50));
    if (!pause_.wait(rest)) return;
  }
}

bool FaultClients::visit(Rng& rng, std::size_t requests) {
  int looks = 0;
  Result<net::BlockingSocket> socket = net::BlockingSocket::connect(
      server_, {.nodelay = true, .timeout = kConnectLook, .keep_connecting = [&] {
                  return !pause_.ended() && ++looks < kConnectLooks;
                }});
  if (!socket) {
    count(fail(socket.error()));
    return false;
  }
  socket->set_timeout(kResponseMax);
  BlockingHttpClient client(std::move(*socket));
  const std::string request = request_of(model_, server_);
  for (std::size_t done = 0; requests == 0 || done < requests; ++done) {
    const Result<void> answered = client.request(request);
    count(answered);
    if (!answered) return false;
    const double rest_mean = model_.upload_bytes > 100'000 ? 5e6 : 12e6;
    if (!pause_.wait(Duration{static_cast<std::int64_t>(rng.exponential(rest_mean))})) return true;
  }
  return true;
}

void FaultClients::count(const Result<void>& outcome) {
  const std::lock_guard lock(mutex_);
  if (outcome) {
    ++counts_.requests;
    return;
  }
  ++counts_.failed;
  if (counts_.first_error.empty()) counts_.first_error = outcome.error().message;
}

}  // namespace tailward::faults
