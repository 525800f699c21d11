#include "plan/signatures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/rng.h"
#include "base/units.h"

namespace tailward::plan {
namespace {

using std::chrono::milliseconds;

using Law = std::function<double(Rng&)>;  // in ms

SignatureSearch search(const Law& law, int count, std::uint64_t seed,
                       Duration rounded_to = Duration{1}) {
  Rng rng(seed);
  Recorder recorder(Unit::kMs);
  for (int i = 0; i < count; ++i) {
    const Duration latency = from_ms(std::max(law(rng), 0.0));
    recorder.latency(latency / rounded_to * rounded_to);
  }
  return find_signatures(recorder.samples());
}

std::string names(const SignatureSearch& found) {
  std::string text;
  for (const Signature& one : found.found) {
    text += (text.empty() ? "" : ", ") + one.name + " " + format_duration(one.at);
  }
  return text;
}

double body(Rng& rng) { return rng.lognormal(5, 2); }

// 0.5 % of the latencies wait for `ms`, and up to 4 more for a tick.
Law with_wait(double ms) {
  return [ms](Rng& rng) { return body(rng) + (rng.chance(0.005) ? ms + rng.uniform(0, 4) : 0); };
}

struct Smooth {
  const char* name;
  Law law;
};

std::vector<Smooth> smooth_laws() {
  return {
      {"lognormal", body},
      {"wide lognormal", [](Rng& rng) { return rng.lognormal(50, 100); }},
      {"short and wide lognormal", [](Rng& rng) { return rng.lognormal(0.5, 2); }},
      {"exponential", [](Rng& rng) { return rng.exponential(10); }},
      {"long exponential", [](Rng& rng) { return rng.exponential(300); }},
      {"uniform", [](Rng& rng) { return rng.uniform(10, 50); }},
      {"two uniform parts",
       [](Rng& rng) { return rng.chance(0.1) ? rng.uniform(200, 500) : rng.uniform(10, 50); }},
      {"ten times longer at times",
       [](Rng& rng) { return body(rng) * (rng.chance(0.05) ? 10 : 1); }},
      {"a second, wider mode",
       [](Rng& rng) { return rng.chance(0.05) ? 60 + 8 * rng.normal() : 10 + rng.normal(); }},
      {"heavy tail", [](Rng& rng) { return 5 / std::pow(1 - rng.uniform(), 1 / 1.5); }},
  };
}

TEST(SignaturesTest, SeesNothingInSmoothLaws) {
  for (const Smooth& smooth : smooth_laws()) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      for (const int count : {300, 5000}) {
        EXPECT_EQ(names(search(smooth.law, count, seed)), "")
            << smooth.name << ", " << count << " latencies, seed " << seed;
      }
    }
    EXPECT_EQ(names(search(smooth.law, 300'000, 99)), "") << smooth.name << ", seed 99";
  }
}

TEST(SignaturesTest, SeesNothingInTheStepsInWhichALogIsWritten) {
  const Law wide = [](Rng& rng) { return rng.lognormal(50, 300); };
  const auto digits = [&wide](int count) -> Law {
    return [&wide, count](Rng& rng) {
      const double value = wide(rng);
      const double step = std::pow(10, std::floor(std::log10(value)) + 1 - count);
      return std::round(value / step) * step;
    };
  };
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const Duration step : {Duration(milliseconds(1)), Duration(milliseconds(10)),
                                Duration(milliseconds(100)), Duration(16'666'667)}) {
      EXPECT_EQ(names(search(wide, 20'000, seed, step)), "")
          << format_duration(step) << ", seed " << seed;
    }
    EXPECT_EQ(names(search(digits(2), 20'000, seed)), "") << "2 digits, seed " << seed;
    EXPECT_EQ(names(search(digits(3), 20'000, seed)), "") << "3 digits, seed " << seed;
  }
}

TEST(SignaturesTest, FindsWaitsOfAFewInAThousand) {
  struct Known {
    double ms;
    const char* expected;
  };
  for (const Known& known :
       {Known{40, "delayed-ack 40.0 ms"}, Known{200, "tcp-retransmission 200 ms"},
        Known{600, "tcp-retransmission 600 ms"}, Known{1000, "syn-retransmission 1.00 s"},
        Known{3000, "syn-retransmission 3.00 s"}, Known{5000, "dns-timeout 5.00 s"}}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      for (const Duration step : {Duration{1}, Duration(milliseconds(1))}) {
        const SignatureSearch found = search(with_wait(known.ms), 10'000, seed, step);
        EXPECT_EQ(names(found), known.expected) << "seed " << seed;
        if (found.found.size() != 1) continue;
        const Signature& one = found.found.front();
        EXPECT_NEAR(one.share, 0.005, 0.003);
        EXPECT_NEAR(to_ms(one.seen), known.ms + 2, 2);
        EXPECT_EQ(one.share, static_cast<double>(one.count) / 10'000);
        EXPECT_LT(to_ms(one.from), known.ms + 5);
        EXPECT_GT(to_ms(one.to), known.ms + 5);
        EXPECT_FALSE(one.meaning.empty());
        EXPECT_FALSE(one.prove.empty());
      }
    }
  }
}

TEST(SignaturesTest, TellsTheKindsOfSynRetransmissionApart) {
  const auto tries = [](std::vector<double> waits) -> Law {
    return [waits](Rng& rng) {
      double latency = body(rng);
      for (const double wait : waits) {
        if (!rng.chance(0.1)) break;
        latency += wait;
      }
      return latency;
    };
  };
  EXPECT_EQ(names(search(tries({1000, 2000, 4000}), 100'000, 1)),
            "syn-retransmission 1.00 s, syn-retransmission 3.00 s, syn-retransmission 7.00 s");
  EXPECT_EQ(
      names(search(tries({1000, 1000, 1000}), 100'000, 1)),
      "syn-retransmission 1.00 s, syn-retransmission-linear 2.00 s, syn-retransmission-linear "
      "3.00 s");
}

TEST(SignaturesTest, KnowsAQuotaByItsMultiplesOf100Ms) {
  const Law throttled = [](Rng& rng) {
    double latency = body(rng);
    while (rng.chance(0.1)) latency += 100;
    return latency;
  };
  const SignatureSearch found = search(throttled, 20'000, 1);
  ASSERT_GE(found.found.size(), 2u) << names(found);
  for (const Signature& one : found.found) EXPECT_EQ(one.name, "cpu-quota-period");
}

TEST(SignaturesTest, FindsEqualGapsThatNoTableKnows) {
  const Law polled = [](Rng& rng) {
    return std::ceil(rng.exponential(60) / 35) * 35 + rng.exponential(0.5);
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const SignatureSearch found = search(polled, 5000, seed);
    ASSERT_EQ(found.found.size(), 1u) << names(found) << ", seed " << seed;
    EXPECT_EQ(found.found[0].name, "equal-gaps");
    EXPECT_NEAR(to_ms(found.found[0].at), 35, 0.5) << "seed " << seed;
    EXPECT_GT(found.found[0].share, 0.8);
  }
}

TEST(SignaturesTest, SaysWhichWaitsWouldHideInTheBody) {
  const Law wide = [](Rng& rng) { return rng.uniform(10, 60) + (rng.chance(0.05) ? 40 : 0); };
  const SignatureSearch found = search(wide, 20'000, 1);
  EXPECT_EQ(names(found), "");
  EXPECT_GT(found.blind_below, milliseconds(60));
  EXPECT_GE(found.body_from, milliseconds(9));
  EXPECT_LE(found.body_to, milliseconds(61));
}

TEST(SignaturesTest, TakesAnyNumberOfLatencies) {
  EXPECT_EQ(names(find_signatures(Samples())), "");
  const Law constant = [](Rng&) { return 5.0; };
  for (const int count : {1, 2, 100'000}) EXPECT_EQ(names(search(constant, count, 1)), "");
  const Law beyond = [](Rng& rng) { return 30'000 + rng.uniform(0, 1000); };
  EXPECT_EQ(search(beyond, 1000, 1).blind_below, Duration{0});
}

}  // namespace
}  // namespace tailward::plan
