#include "findings/statement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace tailward::findings {

std::string_view to_string(Layer layer) {
  switch (layer) {
    case Layer::kUnknown:
      return "unknown";
    case Layer::kHealthy:
      return "healthy";
    case Layer::kWatch:
      return "watch";
    case Layer::kSymptom:
      return "symptom";
    case Layer::kAmplification:
      return "amplification";
    case Layer::kCause:
      return "cause";
  }
  return "unknown";
}

std::string_view to_string(Certainty certainty) {
  switch (certainty) {
    case Certainty::kProven:
      return "proven";
    case Certainty::kConsistent:
      return "consistent";
    case Certainty::kGuessed:
      return "guessed";
  }
  return "guessed";
}

std::string to_line(const Evidence& evidence) {
  if (evidence.packets.empty()) return evidence.text;
  // Enough to look the pattern up, few enough for one line; the JSON output has them all.
  constexpr std::size_t kPacketsNamedMax = 6;
  std::string packets;
  for (std::size_t at = 0; at < std::min(evidence.packets.size(), kPacketsNamedMax); ++at) {
    packets += fmt::format("{}{}", at == 0 ? "" : ", ", evidence.packets[at]);
  }
  if (evidence.packets.size() > kPacketsNamedMax) packets += ", …";
  return fmt::format("{} [packets {}]", evidence.text, packets);
}

}  // namespace tailward::findings
