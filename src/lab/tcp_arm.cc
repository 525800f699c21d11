#include "lab/tcp_arm.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/experiment.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

std::string rtt_text(Duration rtt) { return fmt::format("RTT {:g} ms", to_ms(rtt)); }

}  // namespace

double TcpArm::throughput() const {
  if (!mb_per_s.empty()) return median_of(mb_per_s);
  return seconds > 0 ? static_cast<double>(bytes) / 1e6 / seconds : 0;
}

double TcpArm::steady_throughput() const {
  return steady_mb_per_s.empty() ? throughput() : median_of(steady_mb_per_s);
}

double TcpArm::window_limit() const {
  if (rtt == Duration{0}) return 0;
  return static_cast<double>(counts.in_flight_max) / 1e6 / to_seconds(std::max(rtt, smoothed_rtt));
}

std::string tcp_arm_name(std::string_view option, std::size_t size, std::optional<Duration> rtt) {
  std::string name(option);
  if (size > 0) name += fmt::format("-{}", size);
  if (rtt) name += fmt::format("-rtt{:g}", to_ms(*rtt));
  return name;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double paired_ratio(std::span<const double> a, std::span<const double> b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (b[i] > 0) ratios.push_back(a[i] / b[i]);
  }
  return median_of(std::move(ratios));
}

const TcpArm* find_arm(std::span<const TcpArm> arms, std::string_view option, std::size_t size,
                       Duration rtt) {
  const auto found = std::find_if(arms.begin(), arms.end(), [&](const TcpArm& arm) {
    return arm.option == option && arm.size == size && arm.rtt == rtt;
  });
  return found == arms.end() ? nullptr : &*found;
}

std::vector<report::Check> batch_checks(std::span<const TcpArm> arms) {
  std::vector<report::Check> checks;
  for (const TcpArm& nagle : arms) {
    const TcpArm* nodelay = find_arm(arms, "nodelay", nagle.size, nagle.rtt);
    // The article's third size fills most of a segment by itself: there is little to gain.
    if (nagle.option != "nagle" || nodelay == nullptr || nagle.size > 512) continue;
    checks.push_back(check_below(fmt::format("{} B one way: Nagle's time ÷ NODELAY's", nagle.size),
                                 paired_ratio(nagle.medians, nodelay->medians), 1));
  }
  return checks;
}

std::vector<report::Check> exchange_checks(std::span<const TcpArm> arms) {
  std::vector<report::Check> checks;
  for (const TcpArm& nagle : arms) {
    const TcpArm* nodelay = find_arm(arms, "nodelay", nagle.size, nagle.rtt);
    if (nagle.option != "nagle" || nodelay == nullptr) continue;
    checks.push_back(check_between(
        fmt::format("{} B, {}: Nagle's P50 ÷ NODELAY's", nagle.size, rtt_text(nagle.rtt)),
        paired_ratio(nagle.medians, nodelay->medians), 0.85, 1.15));
  }
  return checks;
}

std::vector<report::Check> interlock_checks(std::span<const TcpArm> arms) {
  std::vector<report::Check> checks;
  for (const TcpArm& arm : arms) {
    const double rtt = to_ms(arm.rtt);
    const std::string name = fmt::format("{}, {}: P50 in ms", arm.option, rtt_text(arm.rtt));
    checks.push_back(arm.option == "nagle" ? check_between(name, arm.median_ms(), 35, 60 + 2 * rtt)
                                           : check_between(name, arm.median_ms(), 0, rtt + 1));
  }
  return checks;
}

std::vector<report::Check> buffer_checks(std::span<const TcpArm> arms) {
  std::vector<report::Check> checks;
  for (const TcpArm& arm : arms) {
    const TcpArm* free = find_arm(arms, "default", arm.size, arm.rtt);
    if (arm.option == "8KiB" && free != nullptr) {
      checks.push_back(
          check_below(fmt::format("8 KiB, {}: throughput ÷ the default's", rtt_text(arm.rtt)),
                      ratio(arm.throughput(), free->throughput()), 0.6));
    }
  }
  for (const TcpArm& arm : arms) {
    if (arm.option == "default" || arm.rtt < 10ms || arm.window_limit() <= 0) continue;
    checks.push_back(check_between(
        fmt::format("{}, {}: steady throughput ÷ (window ÷ RTT)", arm.option, rtt_text(arm.rtt)),
        ratio(arm.steady_throughput(), arm.window_limit()), 0.75, 1.25));
  }
  return checks;
}

}  // namespace tailward::lab
