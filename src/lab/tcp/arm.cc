#include "lab/tcp/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tailward::lab {
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

std::string rtt_text(Duration rtt) { return fmt::format("RTT {:g} ms", to_ms(rtt)); }

std::vector<std::string> tcp_arm_names(const std::vector<std::string>& options,
                                       const std::vector<std::size_t>& sizes,
                                       const std::vector<Duration>& rtts) {
  std::vector<std::optional<Duration>> each(rtts.begin(), rtts.end());
  if (each.empty()) each = {std::nullopt};
  std::vector<std::string> names;
  for (const auto& rtt : each) {
    for (const std::size_t size : sizes) {
      for (const std::string& option : options) names.push_back(tcp_arm_name(option, size, rtt));
    }
  }
  return names;
}

}  // namespace tailward::lab
