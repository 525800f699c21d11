// Goal: a body arrives byte for byte whenever its reader pauses and resumes, in its callbacks
// above all. Method: 1 MiB whose bytes tell their place, both ways, over sockets and in memory, at
// every moment a reader could choose. A socket may fill a read's buffer at once, and the memory
// network here spoils it at once: whoever still looks at bytes there sees it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "net/http_testing.h"
#include "net/loop.h"
#include "net/socket_transport.h"

namespace tailward::net {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kBodyBytes = 1024 * 1024;
constexpr std::size_t kPieceBytes = 1000;  // several chunks in one read

const std::string& pattern() {
  static const std::string bytes = [] {
    std::string made(kBodyBytes, '\0');
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i] = static_cast<char>((static_cast<std::uint32_t>(i) * 2654435761u) >> 24);
    }
    return made;
  }();
  return bytes;
}

testing::AssertionResult is_the_pattern(const std::string& got) {
  if (got == pattern()) return testing::AssertionSuccess();
  const auto [mine, other] =
      std::mismatch(pattern().begin(), pattern().end(), got.begin(), got.end());
  return testing::AssertionFailure()
         << got.size() << " bytes, the first wrong one at " << mine - pattern().begin();
}

class SpoilingStream : public io::Stream {
 public:
  explicit SpoilingStream(std::unique_ptr<io::Stream> inner) : inner_(std::move(inner)) {}
  void read(std::span<char> buffer, ReadCallback done) override {
    std::fill(buffer.begin(), buffer.end(), '#');
    inner_->read(buffer, std::move(done));
  }
  void write(std::span<const char> first, std::span<const char> second,
             WriteCallback done) override {
    inner_->write(first, second, std::move(done));
  }
  void finish_writing() override { inner_->finish_writing(); }
  [[nodiscard]] io::HostPort peer() const override { return inner_->peer(); }

 private:
  std::unique_ptr<io::Stream> inner_;
};

class SpoilingTransport : public io::Transport {
 public:
  explicit SpoilingTransport(io::Transport& inner) : inner_(inner) {}
  std::unique_ptr<io::Connecting> connect(const io::HostPort& to, ConnectCallback done) override {
    return inner_.connect(
        to, [done = std::move(done)](Result<std::unique_ptr<io::Stream>> stream) mutable {
          if (!stream) return done(std::move(stream));
          done(std::make_unique<SpoilingStream>(std::move(*stream)));
        });
  }
  Result<std::unique_ptr<io::Listener>> listen(const io::HostPort& at,
                                               AcceptCallback accepted) override {
    return inner_.listen(
        at, [accepted = std::move(accepted)](std::unique_ptr<io::Stream> stream) mutable {
          accepted(std::make_unique<SpoilingStream>(std::move(stream)));
        });
  }

 private:
  io::Transport& inner_;
};

class Network {
 public:
  virtual ~Network() = default;
  virtual io::Transport& transport() = 0;
  virtual io::Timers& timers() = 0;
  virtual bool run_until(const std::function<bool()>& done) = 0;
};

class InMemory : public Network {
 public:
  io::Transport& transport() override { return spoiling_; }
  io::Timers& timers() override { return net_.timers; }
  bool run_until(const std::function<bool()>& done) override {
    for (int i = 0; i < 1000 && !done(); ++i) net_.pass(milliseconds(1));
    return done();
  }

 private:
  MemoryNet net_;
  SpoilingTransport spoiling_{net_.network};
};

class OverSockets : public Network {
 public:
  io::Transport& transport() override { return transport_; }
  io::Timers& timers() override { return loop_.timers(); }
  bool run_until(const std::function<bool()>& done) override {
    return loop_.run_until([&done] { return done(); }, seconds(20));
  }

 private:
  Loop loop_;
  SocketTransport transport_{loop_};
};

enum class Pausing {
  kInHead,        // and resuming in the same callback
  kInPieces,      // likewise
  kFromHeadOn,    // resuming in a later turn
  kFromPieceOn,   // likewise
  kBetweenReads,  // while a read is under way
};

// Pauses and resumes an exchange or a call at the moments asked for.
class Pauser {
 public:
  Pauser(Pausing when, io::Timers& timers, std::function<void()> pause,
         std::function<void()> resume)
      : when_(when), timers_(timers), pause_(std::move(pause)), resume_(std::move(resume)) {}
  void head() {
    if (when_ == Pausing::kInHead) both();
    if (when_ == Pausing::kFromHeadOn) for_a_while();
  }
  void piece() {
    if (when_ == Pausing::kInPieces) both();
    if (when_ == Pausing::kFromPieceOn) for_a_while();
    if (when_ == Pausing::kBetweenReads && !timer_.armed()) {
      timer_ = timers_.after(Duration{0}, [this] { for_a_while(); });
    }
  }

 private:
  void both() {
    pause_();
    resume_();
  }
  void for_a_while() {
    pause_();
    if (!timer_.armed()) timer_ = timers_.after(microseconds(50), [this] { resume_(); });
  }

  Pausing when_;
  io::Timers& timers_;
  std::function<void()> pause_, resume_;
  io::Timer timer_;
};

class PausingReader : public ExchangeHandler {
 public:
  PausingReader(Pool& pool, Pausing when, io::Timers& timers)
      : exchange(pool, *this),
        pauser_(
            when, timers, [this] { exchange.pause(); }, [this] { exchange.resume(); }) {}
  void on_response_head(http::Response&&) override { pauser_.head(); }
  void on_body(std::span<const char> piece) override {
    pauser_.piece();  // the view must survive it
    body.append(piece.data(), piece.size());
  }
  void on_end() override {}
  void on_error(Error error, bool) override { ADD_FAILURE() << error.message; }

  Exchange exchange;
  std::string body;

 private:
  Pauser pauser_;
};

class PausingReceiver : public BodyHandler {
 public:
  PausingReceiver(CallRef call, Pausing when, io::Timers& timers)
      : call_(std::move(call)),
        pauser_(
            when, timers, [this] { call_->pause_body(); }, [this] { call_->resume_body(); }) {
    call_->stream_body(*this);
    pauser_.head();
  }
  void on_request_body(std::span<const char> piece) override {
    pauser_.piece();
    body.append(piece.data(), piece.size());
  }
  void on_request_end() override { call_->respond(200, "", "ok"); }

  std::string body;

 private:
  CallRef call_;
  Pauser pauser_;
};

using Case = std::tuple<std::string_view, http::BodyKind, Pausing>;

class BodyPauseTest : public testing::TestWithParam<Case> {
 protected:
  BodyPauseTest() {
    if (std::get<0>(GetParam()) == "Sockets") {
      network = std::make_unique<OverSockets>();
    } else {
      network = std::make_unique<InMemory>();
    }
  }
  const bool chunked = std::get<1>(GetParam()) == http::BodyKind::kChunked;
  const Pausing when = std::get<2>(GetParam());
  std::unique_ptr<Network> network;
};

template <class Writer>
void write_in_pieces(Writer& writer) {
  for (std::size_t at = 0; at < kBodyBytes; at += kPieceBytes) {
    writer.write(std::string_view(pattern()).substr(at, kPieceBytes));
  }
}

TEST_P(BodyPauseTest, AResponseBodyArrivesUnchanged) {
  HttpServer server(network->transport(), network->timers(), [this](const CallRef& call) {
    if (!chunked) return call->respond(500, "", pattern());
    http::Response head;
    head.status = 500;
    head.body = http::BodyKind::kChunked;
    call->respond_head(head);
    write_in_pieces(*call);
    call->finish();
  });
  const Result<io::HostPort> at = server.listen({"", 0});
  ASSERT_TRUE(at) << at.error().message;
  Pool pool(network->transport(), network->timers(), *at);
  PausingReader reader(pool, when, network->timers());
  reader.exchange.start(get());
  ASSERT_TRUE(network->run_until([&] { return reader.exchange.done(); }));
  EXPECT_TRUE(is_the_pattern(reader.body));
  EXPECT_EQ(pool.counters().idle, 1u);
}

TEST_P(BodyPauseTest, ARequestBodyArrivesUnchanged) {
  std::unique_ptr<PausingReceiver> receiver;
  HttpServer server(network->transport(), network->timers(), [&](CallRef call) {
    receiver = std::make_unique<PausingReceiver>(std::move(call), when, network->timers());
  });
  const Result<io::HostPort> at = server.listen({"", 0});
  ASSERT_TRUE(at) << at.error().message;
  Pool pool(network->transport(), network->timers(), *at);
  ExchangeLog log;
  Exchange exchange(pool, log);
  http::Request head = post(kBodyBytes);
  if (chunked) {
    head.body = http::BodyKind::kChunked;
    exchange.start_streaming(head);
    write_in_pieces(exchange);
    exchange.finish_body();
  } else {
    exchange.start(head, std::make_shared<const std::string>(pattern()));
  }
  ASSERT_TRUE(network->run_until([&] { return exchange.done(); }));
  EXPECT_EQ(log.events, (Events{"head:200", "end"}));
  ASSERT_NE(receiver, nullptr);
  EXPECT_TRUE(is_the_pattern(receiver->body));
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  static constexpr std::string_view kMoments[] = {"InHead", "InPieces", "FromHeadOn", "FromPieceOn",
                                                  "BetweenReads"};
  const auto [network, framing, when] = info.param;
  return std::string(network) + (framing == http::BodyKind::kChunked ? "Chunked" : "Sized") +
         std::string(kMoments[static_cast<std::size_t>(when)]);
}

INSTANTIATE_TEST_SUITE_P(
    Everywhere, BodyPauseTest,
    testing::Combine(testing::Values("Sockets", "Memory"),
                     testing::Values(http::BodyKind::kLength, http::BodyKind::kChunked),
                     testing::Values(Pausing::kInHead, Pausing::kInPieces, Pausing::kFromHeadOn,
                                     Pausing::kFromPieceOn, Pausing::kBetweenReads)),
    name_of);

}  // namespace
}  // namespace tailward::net
