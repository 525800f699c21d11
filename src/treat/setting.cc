#include "treat/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "base/check.h"
#include "base/units.h"

namespace tailward::treat {
namespace {

constexpr OptionInfo kTable[kOptions] = {
    {Option::kNodelay, "nodelay", "0|1",
     "small segments are sent at once (1), or held until the last one is acknowledged (0)",
     "exactly; switching it on sends what was being held"},
    {Option::kQuickack, "quickack", "0|1",
     "data are acknowledged within 10 ms (1), later with more than 200 connections; the kernel "
     "goes "
     "back by itself, so this is set again and again",
     "it is no longer set; the kernel decides again"},
    {Option::kCork, "cork", "0|1",
     "partly filled segments are held for up to 200 ms (1), or sent (0)",
     "exactly; taking a cork out sends what it held"},
    {Option::kSndbuf, "sndbuf", "SIZE|auto",
     "send buffer; auto: undo the application's setting, the kernel tunes it",
     "size and lock; an odd size that was autotuned becomes one byte smaller"},
    {Option::kRcvbuf, "rcvbuf", "SIZE|auto",
     "receive buffer; a size cannot raise the window beyond what the connection began with, auto "
     "can",
     "size and lock; an odd size that was autotuned becomes one byte smaller; an advertised "
     "window is not taken back"},
    {Option::kNotsentLowat, "notsent_lowat", "SIZE|off",
     "how much unsent data may wait in the socket before it is not writable", "exactly"},
    {Option::kUserTimeout, "user_timeout", "DURATION|off",
     "how long data may stay unacknowledged before the connection is given up",
     "exactly; a connection that it has ended stays ended"},
    {Option::kKeepalive, "keepalive", "0|1", "probes on idle connections", "exactly"},
    {Option::kKeepidle, "keepidle", "DURATION", "idle time before the first probe",
     "the value; it no longer follows a later change of net.ipv4.tcp_keepalive_time"},
    {Option::kKeepintvl, "keepintvl", "DURATION", "time between probes",
     "the value; it no longer follows a later change of net.ipv4.tcp_keepalive_intvl"},
    {Option::kKeepcnt, "keepcnt", "N", "unanswered probes before the connection is given up",
     "the value; it no longer follows a later change of net.ipv4.tcp_keepalive_probes"},
    {Option::kRtoMin, "rto_min_us", "DURATION",
     "the least time before a segment is sent again (Linux 6.15 and later)",
     "the value, in the kernel's ticks"},
    {Option::kDelackMax, "delack_max_us", "DURATION",
     "the longest time that an acknowledgement is delayed (Linux 6.15 and later)",
     "the value, in the kernel's ticks"},
};

constexpr int kKeepaliveSecondsMax = 32767;
constexpr int kKeepaliveCountMax = 127;
constexpr int kTimerMaxUs = 200'000;
// The kernel doubles a buffer's size.
constexpr std::uint64_t kBufferMax = std::numeric_limits<int>::max() / 2;

std::optional<int> parse_whole(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int> parse_switch(std::string_view text) {
  if (text == "1" || text == "on") return 1;
  if (text == "0" || text == "off") return 0;
  return std::nullopt;
}

// A duration in whole units of `unit`, within 1…most.
std::optional<int> parse_units(std::string_view text, Duration unit, int most) {
  const Result<Duration> parsed = parse_duration(text);
  if (!parsed || *parsed % unit != Duration{0}) return std::nullopt;
  const std::int64_t count = *parsed / unit;
  if (count < 1 || count > most) return std::nullopt;
  return static_cast<int>(count);
}

std::optional<int> parse_bytes(std::string_view text) {
  const Result<std::uint64_t> parsed = parse_size(text);
  if (!parsed || *parsed == 0 || *parsed > kBufferMax) return std::nullopt;
  return static_cast<int>(*parsed);
}

std::optional<int> parse_timer_us(std::string_view text) {
  const std::optional<int> plain = parse_whole(text);
  if (!plain) return parse_units(text, std::chrono::microseconds(1), kTimerMaxUs);
  return *plain >= 1 && *plain <= kTimerMaxUs ? plain : std::nullopt;
}

std::optional<int> parse_value(Option option, std::string_view text) {
  switch (option) {
    case Option::kNodelay:
    case Option::kQuickack:
    case Option::kCork:
    case Option::kKeepalive:
      return parse_switch(text);
    case Option::kSndbuf:
    case Option::kRcvbuf:
      return text == "auto" ? 0 : parse_bytes(text);
    case Option::kNotsentLowat:
      return text == "off" ? 0 : parse_bytes(text);
    case Option::kUserTimeout:
      if (text == "off") return 0;
      return parse_units(text, std::chrono::milliseconds(1), std::numeric_limits<int>::max());
    case Option::kKeepidle:
    case Option::kKeepintvl:
      return parse_units(text, std::chrono::seconds(1), kKeepaliveSecondsMax);
    case Option::kKeepcnt: {
      const std::optional<int> count = parse_whole(text);
      return count && *count >= 1 && *count <= kKeepaliveCountMax ? count : std::nullopt;
    }
    case Option::kRtoMin:
    case Option::kDelackMax:
      return parse_timer_us(text);
  }
  return std::nullopt;
}

std::string expected_form(Option option) {
  switch (option) {
    case Option::kSndbuf:
    case Option::kRcvbuf:
      return "a size such as 64KiB, or auto";
    case Option::kNotsentLowat:
      return "a size such as 64KiB, or off";
    case Option::kUserTimeout:
      return "a duration such as 30s, or off";
    case Option::kKeepidle:
    case Option::kKeepintvl:
      return fmt::format("whole seconds, 1s to {}s", kKeepaliveSecondsMax);
    case Option::kKeepcnt:
      return fmt::format("a number from 1 to {}", kKeepaliveCountMax);
    case Option::kRtoMin:
    case Option::kDelackMax:
      return "a duration up to 200ms, such as 5ms";
    default:
      return "1 or 0, on or off";
  }
}

Result<Setting> parse_one(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto* found = std::find_if(std::begin(kTable), std::end(kTable),
                                   [&](const OptionInfo& one) { return one.name == name; });
  if (found == std::end(kTable)) {
    std::string names;
    for (const OptionInfo& one : kTable) names += fmt::format(", {}", one.name);
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is no option that can be treated", name),
                "one of " + names.substr(2) + "; see tailward treat --list");
  }
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  const std::optional<int> parsed = parse_value(found->option, value);
  if (!parsed) {
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is no value of {}", value, name),
                fmt::format("{}={}: {}", name, found->form, expected_form(found->option)));
  }
  return Setting{found->option, *parsed, is_buffer(found->option) && value == "auto"};
}

}  // namespace

std::span<const OptionInfo> known_options() { return kTable; }

const OptionInfo& info(Option option) {
  const OptionInfo& found = kTable[static_cast<std::size_t>(option)];
  TAILWARD_CHECK(found.option == option);
  return found;
}

Result<std::vector<Setting>> parse_settings(std::string_view text) {
  std::vector<Setting> settings;
  while (true) {
    const std::size_t comma = text.find(',');
    const Result<Setting> one = parse_one(text.substr(0, comma));
    if (!one) return fail(one.error());
    if (std::any_of(settings.begin(), settings.end(),
                    [&](const Setting& other) { return other.option == one->option; })) {
      return fail(ErrorKind::kInvalid, fmt::format("{} is given twice", info(one->option).name));
    }
    settings.push_back(*one);
    if (comma == std::string_view::npos) return settings;
    text.remove_prefix(comma + 1);
  }
}

std::string to_string(const Setting& setting) {
  const std::string_view name = info(setting.option).name;
  if (setting.automatic) return fmt::format("{}=auto", name);
  switch (setting.option) {
    case Option::kNotsentLowat:
      if (setting.value == 0) return fmt::format("{}=off", name);
      break;
    case Option::kUserTimeout:
      if (setting.value == 0) return fmt::format("{}=off", name);
      return fmt::format("{}={}ms", name, setting.value);
    case Option::kKeepidle:
    case Option::kKeepintvl:
      return fmt::format("{}={}s", name, setting.value);
    default:
      break;
  }
  return fmt::format("{}={}", name, setting.value);
}

std::string to_string(std::span<const Setting> settings) {
  std::string text;
  for (const Setting& one : settings) text += (text.empty() ? "" : ",") + to_string(one);
  return text;
}

std::string to_string(Option option, const State& state) {
  const int value = state.value;
  switch (option) {
    case Option::kNodelay:
    case Option::kQuickack:
    case Option::kCork:
    case Option::kKeepalive:
      return value != 0 ? "on" : "off";
    case Option::kSndbuf:
    case Option::kRcvbuf:
      return fmt::format("{} bytes ({})", format_count(static_cast<std::uint64_t>(value)),
                         state.locked ? "pinned" : "autotuned");
    case Option::kNotsentLowat:
      // Unset is 0, and -1 (UINT_MAX) means the same.
      if (value == 0 || value == -1) return "off";
      return fmt::format("{} bytes", format_count(static_cast<std::uint32_t>(value)));
    case Option::kUserTimeout:
      return value == 0 ? "off" : format_duration(std::chrono::milliseconds(value));
    case Option::kKeepidle:
    case Option::kKeepintvl:
      return fmt::format("{} s", value);
    case Option::kKeepcnt:
      return fmt::format("{}", value);
    case Option::kRtoMin:
    case Option::kDelackMax:
      return format_duration(std::chrono::microseconds(value));
  }
  return "";
}

Setting setting_for(Option option, const State& state) {
  if (!is_buffer(option)) return {option, state.value};
  if (!state.locked) return {option, 0, true};
  return {option, state.value / 2};
}

State wanted(const State& old, const Setting& setting) {
  if (setting.automatic) return {old.value, false};
  if (is_buffer(setting.option)) return {2 * setting.value, true};
  return {setting.value};
}

bool satisfies(const State& state, const Setting& setting) {
  return !is_non_sticky(setting.option) && state == wanted(state, setting);
}

}  // namespace tailward::treat
