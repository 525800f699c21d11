// The socket options that `tailward treat` can set on a live process, and how each is restored.
// What could not be restored is not in the table.
//
// Pure values and functions; safe from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tailward::treat {

enum class Option : std::uint8_t {
  kNodelay,
  kQuickack,
  kCork,
  kSndbuf,
  kRcvbuf,
  kNotsentLowat,
  kUserTimeout,
  kKeepalive,
  kKeepidle,
  kKeepintvl,
  kKeepcnt,
  kRtoMin,
  kDelackMax
};
inline constexpr std::size_t kOptions = 13;

struct OptionInfo {
  Option option;
  std::string_view name;      // as it is typed and as `tailward sockets` shows it
  std::string_view form;      // "0|1", "SIZE|auto", …
  std::string_view what;      // what it does to latency
  std::string_view rollback;  // how it is restored, and what differs afterwards, if anything
};
// In the order of Option.
std::span<const OptionInfo> known_options();
const OptionInfo& info(Option option);

// One option with its new value, in the units of setsockopt(2).
struct Setting {
  Option option = Option::kNodelay;
  int value = 0;
  bool automatic = false;  // sndbuf and rcvbuf: hand the size back to the kernel's autotuning
  friend bool operator==(const Setting&, const Setting&) = default;
};

// The value of an option on one socket, as the kernel tells it.
struct State {
  int value = 0;        // sndbuf and rcvbuf: twice what was asked for
  bool locked = false;  // sndbuf and rcvbuf: the size was set and is not autotuned (SO_BUF_LOCK)
  friend bool operator==(const State&, const State&) = default;
};

// "nodelay=1,quickack=on": 0, 1, on and off; sizes ("64KiB") or `auto`; durations ("5s") or `off`.
// Errors: kInvalid, with the accepted form.
Result<std::vector<Setting>> parse_settings(std::string_view text);

// As parse_settings() reads it.
std::string to_string(const Setting& setting);
std::string to_string(std::span<const Setting> settings);
// "on", "16,384 bytes (autotuned)", "30 s"
std::string to_string(Option option, const State& state);
// What `tailward treat --set` would have to be given to have this state again.
Setting setting_for(Option option, const State& state);
// What `setting` is to make of `old`.
State wanted(const State& old, const Setting& setting);
// Whether a socket in `state` is already as `setting` wants it.
bool satisfies(const State& state, const Setting& setting);

// A buffer: two values make up its state.
constexpr bool is_buffer(Option option) {
  return option == Option::kSndbuf || option == Option::kRcvbuf;
}
// The kernel itself changes it back and forth: it is set again and again.
constexpr bool is_non_sticky(Option option) { return option == Option::kQuickack; }

}  // namespace tailward::treat
