// `interlock` and `nodelay-reqresp`: requests of one or two writes, and their answers.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <thread>
#include <utility>

#include "lab/tcp_run.h"
#include "net/real_clock.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

// The first rounds of a connection may be acknowledged at once, whatever comes later: the kernel
// begins with quick ACKs.
constexpr std::uint64_t kWarmUp = 12;
constexpr std::uint64_t kCounted = 20;

struct Variant {
  std::string option;
  bool nodelay = false;
  std::vector<std::size_t> writes = {};  // of a request, bytes each
  std::size_t answer = 0;
};

std::size_t request_bytes(const Variant& variant) {
  std::size_t sum = 0;
  for (const std::size_t bytes : variant.writes) sum += bytes;
  return sum;
}

// One connection with a server that answers, in a thread. Not a process of its own: nothing here
// compares CPU, and the two ends meet in the kernel either way.
class Conversation {
 public:
  static Result<std::unique_ptr<Conversation>> start(TcpPlace& place, const Variant& variant,
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
    return std::unique_ptr<Conversation>(
        new Conversation(std::move(*pair), variant, std::move(*watch)));
  }

  ~Conversation() { hang_up(); }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // One request, and its answer.
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

  // Ends it, and says what passed.
  TcpCounts end() {
    TcpCounts counts = TcpRun::counts(std::move(watch_), pair_.client);
    hang_up();
    counts.write_calls = pair_.client.write_calls();
    counts.read_calls = pair_.server.read_calls();
    return counts;
  }

 private:
  Conversation(TcpPair pair, const Variant& variant, std::unique_ptr<TcpWatch> watch)
      : pair_(std::move(pair)),
        variant_(variant),
        watch_(std::move(watch)),
        out_(request_bytes(variant)),
        in_(variant.answer) {
    server_ = std::thread([this] {
      std::vector<char> request(request_bytes(variant_));
      const std::vector<char> answer(variant_.answer);
      while (pair_.server.read_exact(request) && pair_.server.write_all(answer)) {
      }
    });
  }

  void hang_up() {
    pair_.client.close();
    if (server_.joinable()) server_.join();
  }

  TcpPair pair_;
  Variant variant_;
  std::unique_ptr<TcpWatch> watch_;
  std::vector<char> out_;
  std::vector<char> in_;
  std::thread server_;
};

// So many rounds, of which the warm-up is not recorded.
Result<void> run_rounds(Conversation& with, std::uint64_t rounds, TcpRun& run, TcpArm& arm) {
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

Result<void> warm_up(Conversation& with) {
  for (std::uint64_t i = 0; i < kWarmUp; ++i) {
    if (const Result<Duration> took = with.round(); !took) return fail(took.error());
  }
  return {};
}

// A few rounds on a new connection whose packets are counted.
Result<void> count_rounds(TcpPlace& place, const Variant& variant, TcpRun& run, TcpArm& arm) {
  Result<std::unique_ptr<Conversation>> with = Conversation::start(place, variant, run, true);
  if (!with) return fail(with.error());
  if (const Result<void> warm = warm_up(**with); !warm) return warm;
  std::uint64_t rounds = kWarmUp;
  for (std::uint64_t i = 0; i < kCounted && run.step(); ++i, ++rounds) {
    if (const Result<Duration> took = (*with)->round(); !took) return fail(took.error());
  }
  arm.counts = (*with)->end();
  arm.counts.messages = rounds;
  arm.counts.bytes = rounds * request_bytes(variant);
  return {};
}

// The rounds of all variants, `block` at a time. Those that take turns differ in NODELAY only, and
// share one connection on which it is switched: with a connection and a thread for each, whether
// the scheduler puts a server beside its client or on another CPU matters more than the option.
Result<void> run_blocks(TcpPlace& place, const std::vector<Variant>& variants, std::uint64_t rounds,
                        std::uint64_t block, TcpRun& run, std::span<TcpArm> arms) {
  std::unique_ptr<Conversation> with;
  for (std::uint64_t done = 0; done < rounds; done += block) {
    for (std::size_t i = 0; i < variants.size() && !run.stopped(); ++i) {
      run.begin("arm " + arms[i].name);
      if (with == nullptr || block == rounds) {
        Result<std::unique_ptr<Conversation>> fresh =
            Conversation::start(place, variants[i], run, false);
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

// The rounds of all variants, then, once, a few more of each to count packets.
Result<void> run_variants(TcpPlace& place, const std::vector<Variant>& variants,
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

struct Plan {
  Duration rtt;
  std::uint64_t rounds;
  std::uint64_t block;
};

TcpArm arm_for(const Variant& variant, Duration rtt) {
  TcpArm arm;
  arm.option = variant.option;
  arm.size = request_bytes(variant);
  arm.rtt = rtt;
  return arm;
}

struct Article {
  std::size_t size;
  double nodelay_us;
  double nagle_us;
};
constexpr std::array<Article, 4> kReqrespArticle{
    {{32, 42, 39}, {64, 40, 40}, {512, 40, 40}, {4096, 38, 37}}};

findings::Statement interlock_verdict(std::span<const TcpArm> arms) {
  findings::Statement verdict;
  const TcpArm* worst = nullptr;
  for (const TcpArm& arm : arms) {
    if (arm.option == "nagle") worst = &arm;
  }
  if (worst == nullptr) return verdict;
  verdict.layer = findings::Layer::kCause;
  verdict.sentence = fmt::format(
      "With RTT {:g} ms a request of two small writes takes {:.1f} ms: the second write waits for "
      "the ACK of the first, and the server delays that ACK because it waits for the rest.",
      to_ms(worst->rtt), worst->median_ms());
  verdict.evidence = {{"TCP_NODELAY ends the wait, and so does one write for each request"},
                      {"the delayed ACK is a timer of 40 ms: no faster network shortens it"}};
  return verdict;
}

}  // namespace

Result<ExperimentResult> run_interlock(Context& context) {
  const std::uint64_t rounds = context.quick ? 30 : 100;
  const std::vector<Variant> variants{{"nagle", false, {32, 32}, 64},
                                      {"nodelay", true, {32, 32}, 64},
                                      {"one-write", false, {64}, 64}};
  const std::vector<Duration> rtts{0ms, 1ms, 10ms};
  const auto runs = static_cast<std::uint64_t>(context.runs);
  TcpRun run(context, rtts.size() * variants.size() * (runs * rounds + kCounted));
  Result<std::vector<TcpPlace>> places = run.places(rtts);
  if (!places) return fail(places.error());
  std::vector<TcpArm> arms;
  for (const TcpPlace& place : *places) {
    for (const Variant& variant : variants) {
      arms.push_back(arm_for(variant, place.rtt()));
      arms.back().name = tcp_arm_name(variant.option, 0, place.rtt());
    }
  }
  for (int i = 0; i < context.runs && !run.stopped(); ++i) {
    for (std::size_t at = 0; at < places->size() && !run.stopped(); ++at) {
      // Not in turns: a connection that rests longer than its retransmission timer is given quick
      // ACKs again, and the interlock would be gone for as long.
      const std::span<TcpArm> here = std::span(arms).subspan(at * variants.size(), variants.size());
      const Result<void> ran = run_variants((*places)[at], variants, rounds, rounds, run, here);
      if (!ran) return fail(ran.error());
    }
  }
  ExperimentResult result = run.finish(std::move(arms));
  result.verdict = interlock_verdict(result.tcp);
  result.checks = interlock_checks(result.tcp);
  return result;
}

Result<ExperimentResult> run_nodelay_reqresp(Context& context) {
  const bool quick = context.quick;
  const std::vector<Plan> plans{{0ms, quick ? 1000U : 5000U, 25},
                                {1ms, quick ? 200U : 5000U, 50},
                                {10ms, quick ? 40U : 200U, 10}};
  std::vector<Duration> rtts;
  std::uint64_t steps = 0;
  for (const Plan& plan : plans) {
    rtts.push_back(plan.rtt);
    steps += static_cast<std::uint64_t>(context.runs) * plan.rounds + kCounted;
  }
  TcpRun run(context, steps * kReqrespArticle.size() * 2);
  Result<std::vector<TcpPlace>> places = run.places(rtts);
  if (!places) return fail(places.error());
  std::vector<TcpArm> arms;
  std::vector<std::vector<Variant>> variants;  // those of one place and size
  for (const TcpPlace& place : *places) {
    for (const Article& article : kReqrespArticle) {
      variants.push_back({{"nodelay", true, {article.size}, article.size},
                          {"nagle", false, {article.size}, article.size}});
      for (const Variant& variant : variants.back()) {
        arms.push_back(arm_for(variant, place.rtt()));
        arms.back().name = tcp_arm_name(variant.option, article.size, place.rtt());
        if (place.rtt() != Duration{0}) continue;
        arms.back().article.median_ms =
            (variant.nodelay ? article.nodelay_us : article.nagle_us) / 1000;
      }
    }
  }
  for (int i = 0; i < context.runs && !run.stopped(); ++i) {
    for (std::size_t at = 0; at < variants.size() && !run.stopped(); ++at) {
      TcpPlace& place = (*places)[at / kReqrespArticle.size()];
      const auto plan = std::find_if(plans.begin(), plans.end(),
                                     [&](const Plan& one) { return one.rtt == place.rtt(); });
      const Result<void> ran = run_variants(place, variants[at], plan->rounds, plan->block, run,
                                            std::span(arms).subspan(at * 2, 2));
      if (!ran) return fail(ran.error());
    }
  }
  ExperimentResult result = run.finish(std::move(arms));
  result.checks = exchange_checks(result.tcp);
  if (result.ok()) {
    result.verdict.layer = findings::Layer::kHealthy;
    result.verdict.sentence =
        "With one write for each request and each answer, Nagle has nothing to hold back: the "
        "option makes no difference, with or without round-trip time.";
  }
  return result;
}

}  // namespace tailward::lab
