// Random numbers that replay from their seed.
//
// xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2019),
// seeded through splitmix64. The draws are the same on every platform, unlike those of <random>'s
// distributions. Not for secrets. Not thread-safe: an Rng belongs to one thread.
#pragma once

#include <cstdint>

namespace tailward {

class Rng {
 public:
  explicit Rng(std::uint64_t seed);

  std::uint64_t next() {
    const std::uint64_t result = rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotl(state_[3], 45);
    return result;
  }

  // In [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  bool chance(double probability) { return uniform() < probability; }
  // In [0, n); n > 0. Lemire's multiply-and-shift; the bias is below n / 2^64.
  std::uint64_t below(std::uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * n) >> 64);
  }

  double exponential(double mean);
  double normal();  // mean 0, standard deviation 1
  // A lognormal of the given mean and standard deviation (of the value itself, not of its
  // logarithm).
  double lognormal(double mean, double sd);

  // An independent stream for the part numbered `stream`: the same seed and number give the same
  // stream.
  static Rng stream(std::uint64_t seed, std::uint64_t stream);

 private:
  static constexpr std::uint64_t rotl(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::uint64_t state_[4];
};

// One step of splitmix64: a good 64-bit hash of `x`.
std::uint64_t mix64(std::uint64_t x);

}  // namespace tailward
