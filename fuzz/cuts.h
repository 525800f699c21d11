// Where a fuzz target cuts its input: derived from the input, so that a failure replays from its
// file.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/rng.h"

namespace tailward::fuzz {

inline std::vector<std::size_t> some_cuts(std::string_view bytes) {
  std::uint64_t seed = bytes.size();
  for (const char c : bytes) seed = mix64(seed ^ static_cast<unsigned char>(c));
  Rng rng(seed);
  // Few long pieces or many short ones.
  const std::uint64_t longest = 1 + rng.below(rng.chance(0.5) ? 8 : bytes.size() + 1);
  std::vector<std::size_t> cuts;
  for (std::size_t at = rng.below(longest + 1); at < bytes.size(); at += 1 + rng.below(longest)) {
    cuts.push_back(at);
  }
  return cuts;
}

// The head without the fields that the serialiser writes itself.
template <class Head>
Head without_framing(Head head) {
  for (const char* name : {"Connection", "Content-Length", "Transfer-Encoding"}) {
    head.fields.remove(name);
  }
  return head;
}

}  // namespace tailward::fuzz
