// The old values of what is being treated, and the making and undoing of changes.
//
// A connection is named by its process (held by a pidfd), the number of its descriptor there and
// the socket's cookie (SO_COOKIE: never given twice while the system runs). It is duplicated afresh
// for each step and only for that step: a duplicate that is kept would hold back the FIN of a
// connection that its owner closes. docs/design/treat.md has the reasoning.
//
// Thread safety: one thread. Used by the guardian, and by its starter if the guardian is lost.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "probe/sockets.h"
#include "treat/setting.h"

namespace tailward::treat {

struct Target {
  std::uint32_t process = 0;     // index into the log's processes
  int fd = -1;                   // there
  std::uint32_t inode = 0;       // as seen when it was chosen
  std::uint16_t local_port = 0;  // to find it again when it was handed to another process
};

enum class StepOutcome : std::uint8_t {
  kDone,
  kAlready,        // has the wanted value; nothing was changed
  kClosed,         // closed meanwhile, or its number belongs to another socket now
  kOwn,            // the process changes this option itself: left alone
  kDenied,         // the message names the privilege
  kNotRestorable,  // could not be restored exactly, so it is not changed
  kFailed,
};
// "done", "already so", "closed", …
std::string_view to_string(StepOutcome outcome);

// What became of one step. Of fixed size: it travels between two processes as it is.
struct StepResult {
  StepOutcome outcome = StepOutcome::kFailed;
  std::uint32_t id = 0;
  std::uint64_t cookie = 0;
  Duration at{};                         // when it was done; since 1970, as packets are stamped
  std::array<State, kOptions> before{};  // in the order of the settings
  std::array<State, kOptions> after{};
  std::array<char, 200> message{};  // ends with 0

  [[nodiscard]] std::string text() const { return std::string(message.data()); }
};

// What became of all changes at the end.
struct Rollback {
  std::uint32_t restored = 0;   // read back and found as they were
  std::uint32_t unchanged = 0;  // never changed
  std::uint32_t closed = 0;     // nothing to restore any more
  std::uint32_t own = 0;        // changed again by the process itself; its value stays
  std::uint32_t kept = 0;       // on request
  std::uint32_t failed = 0;
  std::array<char, 200> message{};  // of the first failure

  [[nodiscard]] bool complete() const { return failed == 0 && kept == 0; }
  [[nodiscard]] std::string text() const { return std::string(message.data()); }
};

class UndoLog {
 public:
  static constexpr std::size_t kConnectionsMax = 20'000;

  // `processes` must outlive it.
  UndoLog(const std::vector<probe::Process>& processes, std::vector<Setting> settings)
      : processes_(processes), settings_(std::move(settings)) {}

  // Notes the values of now and rehearses the way back. Changes nothing.
  StepResult track(const Target& target);
  // REQUIRES (both): id came from track().
  StepResult apply(std::uint32_t id);
  StepResult restore(std::uint32_t id);
  // Sets the non-sticky options again where they are applied.
  void refresh();
  // How many connections refresh() goes to.
  [[nodiscard]] std::size_t refreshed() const;
  Rollback restore_all();
  Rollback keep_all() const;

  // What another log of the same processes and settings did, so that this one can undo it.
  void adopt_track(const Target& target, const StepResult& result);
  void adopt_apply(std::uint32_t id, const StepResult& result);
  // A change was ordered, and whether it was made is not known.
  void expect_apply(std::uint32_t id);
  void adopt_restore(std::uint32_t id);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Change {
    State old;
    State now;
    bool made = false;
    bool unsure = false;  // ordered, but not confirmed
  };
  struct Entry {
    Target target;
    std::uint64_t cookie = 0;
    std::vector<Change> changes;  // one for each setting
    bool gone = false;            // from its descriptor: not refreshed any more
    [[nodiscard]] bool changed() const;
  };

  [[nodiscard]] StepResult result_of(std::uint32_t id, StepOutcome outcome,
                                     std::string_view message) const;
  [[nodiscard]] tl::expected<probe::Descriptor, StepResult> open(std::uint32_t id) const;
  [[nodiscard]] bool is_refreshed(const Entry& entry) const;
  StepOutcome undo(int fd, Entry& entry, std::string& message);
  void restore_strays(const std::vector<std::uint32_t>& missing, Rollback& rollback);
  [[nodiscard]] probe::Descriptor find_stray(const Entry& entry) const;
  static void count(Rollback& rollback, StepOutcome outcome, const std::string& message);

  const std::vector<probe::Process>& processes_;
  std::vector<Setting> settings_;
  std::vector<Entry> entries_;
};

}  // namespace tailward::treat
