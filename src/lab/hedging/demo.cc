#include "lab/hedging/demo.h"

#include <fmt/format.h>

#include "base/units.h"
#include "lab/checks.h"

namespace tailward::lab {
namespace {

constexpr const char* kNext =
    "  ./run lab three-layer --html report.html   the same with curves, beside the article's "
    "figures\n"
    "  ./run lab list                             the other experiments\n"
    "  ./run proxy --help                         hedge your own service, with this verdict "
    "at /stats\n";

std::string change(double value, double base) {
  if (base <= 0) return "–";
  const double ratio = value / base;
  return ratio >= 2 ? fmt::format("×{:.1f}", ratio) : fmt::format("{:+.0f} %", (ratio - 1) * 100);
}

std::string figures(const ArmResult& arm) {
  return fmt::format(
      "  P50 {:.0f} ms   P95 {:.0f} ms   P99 {:.0f} ms   requests at the server {}   lock wait "
      "{:.1f} s\n",
      arm.ms(0.5), arm.ms(0.95), arm.ms(0.99), format_count(arm.server.requests),
      to_seconds(arm.server.lock_wait));
}

}  // namespace

std::string demo_opening() {
  return "A service is slow: its P99 is half a second. It is a real one, in a process of its own: "
         "every request\n"
         "takes one lock for 1–2 ms, then works for 10–50 ms, and one in ten for 200–500 ms.\n";
}

std::string demo_before(const std::string& arm) {
  if (arm == "none") return "1  First, measure. 50 requests in flight, no hedging.";
  if (arm == "fixed") {
    return "2  The popular cure: hedge. Whatever takes longer than 50 ms is sent a second time.";
  }
  return "3  The cause first: one lock becomes sixteen. Then the same hedging as a backstop.";
}

std::string demo_after(const ArmResult& arm, const ArmResult* unhedged) {
  std::string text = figures(arm);
  if (unhedged == nullptr) return text;
  text += fmt::format(
      "  against no hedging: P50 {}, P99 {}, lock wait {}; {} of the requests were hedged\n",
      change(arm.ms(0.5), unhedged->ms(0.5)), change(arm.ms(0.99), unhedged->ms(0.99)),
      change(to_seconds(arm.server.lock_wait), to_seconds(unhedged->server.lock_wait)),
      format_share(arm.counters.trigger_rate()));
  const hedge::Verdict verdict = judge_arm(arm, unhedged);
  text += fmt::format("  verdict: {}. {}\n", to_string(verdict.layer), verdict.sentence);
  return text;
}

std::string demo_closing(const std::vector<report::Check>& checks) {
  std::string text;
  for (const report::Check& check : checks) {
    if (check.ok) continue;
    text += fmt::format("  {}: {}, expected {}\n", check.name, check.value, check.bound);
  }
  if (!text.empty()) {
    return "This time, on this machine, the story did not go as it is told:\n" + text +
           "A busy machine is one reason; run it again on a quiet one before you conclude "
           "anything.\n\n" +
           kNext;
  }
  return std::string(
             "The P99 dropped both times. Then what? The first time the thermometer looked better "
             "and "
             "the infection\n"
             "spread: the trigger rate and the server's lock said so, the client's P99 did not. "
             "Cause, "
             "amplification,\n"
             "symptom: in that order.\n\n") +
         kNext;
}

report::Check demo_check(const HedgingResult& result) {
  const ArmResult* none = result.find("none");
  const ArmResult* fixed = result.find("fixed");
  const double before = none == nullptr ? 0 : none->ms(0.99);
  const double ratio = fixed == nullptr || before <= 0 ? 1 : fixed->ms(0.99) / before;
  return check_below("hedging alone lowers the client's P99 (times)", ratio, 1);
}

}  // namespace tailward::lab
