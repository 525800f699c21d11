#include "lab/tcp/rounds.h"

#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "net/real_clock.h"

namespace tailward::lab {
namespace {

// Rounds that do not count. The kernel acknowledges the first segments of a connection at once,
// whatever comes later (quick ACKs, tcp_incr_quickack() in net/ipv4/tcp_input.c: 16 at most).
constexpr std::uint64_t kWarmUp = 12;

// One connection with a server that responds, on a thread. It needs no process of its own: nothing
// here compares CPU time, and the two ends meet in the kernel either way.
class RoundTrips {
 public:
  static Result<std::unique_ptr<RoundTrips>> start(TcpPlace& place, const RoundVariant& variant,
                                                   TcpRun& run, bool watched) {
    net::BlockingOptions options = tcp_options();
    options.nodelay = variant.nodelay;
    Result<net::BlockingSocket> listener = place.listen(options);
    if (!listener) return fail(listener.error());
    Result<std::unique_ptr<TcpWatch>> watch = std::unique_ptr<TcpWatch>();
    if (watched) watch = run.watch(place, listener->local().port);
    if (!watch) return fail(watch.error());
    Result<TcpPair> pair = place.connect(*listener, options);
    if (!pair) return fail(pair.error());
    return std::unique_ptr<RoundTrips>(
        new RoundTrips(std::move(*pair), variant, std::move(*watch)));
  }

  ~RoundTrips() { hang_up(); }
  RoundTrips(const RoundTrips&) = delete;
  RoundTrips& operator=(const RoundTrips&) = delete;

  // One request and its response.
  Result<Duration> round() {
    const TimePoint began = net::real_now();
    for (const std::size_t bytes : variant_.writes) {
      if (const auto sent = pair_.client.write(std::span(out_).first(bytes)); !sent) {
        return fail(sent.error());
      }
    }
    if (const auto answered = pair_.client.read_exact(in_); !answered) {
      return fail(answered.error());
    }
    return net::real_now() - began;
  }

  // Of both ends. Not while a round is under way.
  void set_nodelay(bool on) {
    pair_.client.set_nodelay(on);
    pair_.server.set_nodelay(on);
  }

  // Ends the connection, and returns what was counted.
  TcpCounts end() {
    TcpCounts counts = TcpRun::counts(std::move(watch_), pair_.client);
    hang_up();
    counts.write_calls = pair_.client.write_calls();
    counts.read_calls = pair_.server.read_calls();
    return counts;
  }

 private:
  RoundTrips(TcpPair pair, const RoundVariant& variant, std::unique_ptr<TcpWatch> watch)
      : pair_(std::move(pair)),
        variant_(variant),
        watch_(std::move(watch)),
        out_(request_bytes(variant)),
        in_(variant.response_bytes) {
    server_ = std::thread([this] {
      std::vector<char> request(request_bytes(variant_));
      const std::vector<char> response(variant_.response_bytes);
      while (pair_.server.read_exact(request) && pair_.server.write_all(response)) {
      }
    });
  }

  void hang_up() {
    pair_.client.close();
    if (server_.joinable()) server_.join();
  }

  TcpPair pair_;
  RoundVariant variant_;
  std::unique_ptr<TcpWatch> watch_;
  std::vector<char> out_;
  std::vector<char> in_;
  std::thread server_;
};

// Runs `rounds` rounds, and records each.
Result<void> run_rounds(RoundTrips& with, std::uint64_t rounds, TcpRun& run, TcpArm& arm) {
  std::vector<double> times;
  for (std::uint64_t i = 0; i < rounds && run.step(); ++i) {
    const Result<Duration> took = with.round();
    if (!took) return fail(took.error());
    arm.latency.record(*took);
    arm.seconds += to_seconds(*took);
    times.push_back(to_ms(*took));
  }
  arm.messages += times.size();
  if (!times.empty()) arm.medians.push_back(median_of(std::move(times)));
  return {};
}

Result<void> warm_up(RoundTrips& with) {
  for (std::uint64_t i = 0; i < kWarmUp; ++i) {
    if (const Result<Duration> took = with.round(); !took) return fail(took.error());
  }
  return {};
}

// A few rounds on a new connection whose packets are counted.
Result<void> count_rounds(TcpPlace& place, const RoundVariant& variant, TcpRun& run, TcpArm& arm) {
  Result<std::unique_ptr<RoundTrips>> with = RoundTrips::start(place, variant, run, true);
  if (!with) return fail(with.error());
  if (const Result<void> warm = warm_up(**with); !warm) return warm;
  std::uint64_t rounds = kWarmUp;
  for (std::uint64_t i = 0; i < kCountedRounds && run.step(); ++i, ++rounds) {
    if (const Result<Duration> took = (*with)->round(); !took) return fail(took.error());
  }
  arm.counts = (*with)->end();
  arm.counts.messages = rounds;
  arm.counts.bytes = rounds * request_bytes(variant);
  return {};
}

Result<void> run_blocks(TcpPlace& place, const std::vector<RoundVariant>& variants,
                        std::uint64_t rounds, std::uint64_t block, TcpRun& run,
                        std::span<TcpArm> arms) {
  std::unique_ptr<RoundTrips> with;
  for (std::uint64_t done = 0; done < rounds; done += block) {
    for (std::size_t i = 0; i < variants.size() && !run.stopped(); ++i) {
      run.begin("arm " + arms[i].name);
      if (with == nullptr || block == rounds) {
        Result<std::unique_ptr<RoundTrips>> fresh =
            RoundTrips::start(place, variants[i], run, false);
        if (!fresh) return fail(fresh.error());
        with = std::move(*fresh);
        if (const Result<void> warm = warm_up(*with); !warm) return warm;
      }
      with->set_nodelay(variants[i].nodelay);
      if (const Result<void> ran = run_rounds(*with, block, run, arms[i]); !ran) return ran;
    }
  }
  return {};
}

}  // namespace

std::size_t request_bytes(const RoundVariant& variant) {
  std::size_t sum = 0;
  for (const std::size_t bytes : variant.writes) sum += bytes;
  return sum;
}

TcpArm arm_for(const RoundVariant& variant, Duration rtt) {
  TcpArm arm;
  arm.option = variant.option;
  arm.size = request_bytes(variant);
  arm.rtt = rtt;
  return arm;
}

Result<void> run_variants(TcpPlace& place, const std::vector<RoundVariant>& variants,
                          std::uint64_t rounds, std::uint64_t block, TcpRun& run,
                          std::span<TcpArm> arms) {
  const Result<void> ran = run_blocks(place, variants, rounds, block, run, arms);
  if (!ran) return ran;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    arms[i].bytes = arms[i].messages * request_bytes(variants[i]);
    if (run.stopped() || arms[i].counts.source != CountSource::kNone) continue;
    if (const auto counted = count_rounds(place, variants[i], run, arms[i]); !counted) {
      return counted;
    }
  }
  return {};
}

}  // namespace tailward::lab
