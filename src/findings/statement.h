// What every part of Tailward says about a service, and what it says it with: the verdict on a
// hedging route, a finding about TCP and the conclusion of an experiment are statements with
// evidence. They share these types, so a report shows all of them without a translation.
//
// Plain values. Thread safety: as std::string.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tailward::findings {

// Where the fault is. docs/terminology.md explains the three layers; the names are a contract of
// the JSON output: add, never rename.
enum class Layer {
  kUnknown,        // too little was measured to say
  kHealthy,        // hedges catch a tail, nothing else is wrong
  kWatch,          // more than a tail, or too uncertain to call
  kSymptom,        // the client's latency, with no reason found below it
  kAmplification,  // structure turns "one slow" into "all slow"
  kCause,          // the work itself is slow
};

// "unknown", "healthy", "watch", "symptom", "amplification", "cause".
std::string_view to_string(Layer layer);

// How much of a statement the evidence carries: it shows the mechanism, it agrees with it and with
// nothing else that is known, or it only makes it likely.
enum class Certainty { kProven, kConsistent, kGuessed };

// "proven", "consistent", "guessed".
std::string_view to_string(Certainty certainty);

// One observation behind a statement: a sentence, and the packets that anybody can look up.
struct Evidence {
  std::string text;
  std::vector<std::uint64_t> packets = {};  // their numbers in the capture; a few, often none
};

// The evidence as one line: "100 of 200 requests [packets 7, 9, 11]". Long lists are cut.
std::string to_line(const Evidence& evidence);

struct Statement {
  Layer layer = Layer::kUnknown;
  std::string sentence;  // one, as a colleague would say it
  std::vector<Evidence> evidence = {};
};

}  // namespace tailward::findings
