#include "treat/undo_log.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/check.h"
#include "base/wall_clock.h"
#include "treat/socket_option.h"

namespace tailward::treat {
namespace {

std::optional<std::uint64_t> cookie_of(int fd) {
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (::getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

// The socket's inode, as /proc and sock_diag show it. It is 32 bits there.
std::uint32_t inode_of(int fd) {
  struct stat about {};
  return ::fstat(fd, &about) == 0 ? static_cast<std::uint32_t>(about.st_ino) : 0;
}

template <std::size_t N>
// Cut to fit: the message travels in a record of fixed size.
void write_text(std::array<char, N>& into, std::string_view text) {
  const std::size_t length = std::min(text.size(), N - 1);
  std::memcpy(into.data(), text.data(), length);
  into[length] = '\0';
}

StepOutcome outcome_of(const Error& error) {
  return error.kind == ErrorKind::kDenied ? StepOutcome::kDenied : StepOutcome::kFailed;
}

std::string text_of(const Error& error) {
  return error.hint.empty() ? error.message : error.message + " (" + error.hint + ")";
}

// Whether the process has set the option since we read or set `known`. While a buffer is autotuned,
// its size moves by itself.
bool changed_by_owner(Option option, const State& now, const State& known) {
  // The kernel changes a non-sticky option with each exchange, so a difference says nothing.
  if (is_non_sticky(option)) return false;
  if (is_buffer(option) && !now.locked && !known.locked) return false;
  return now != known;
}

}  // namespace

std::string_view to_string(StepOutcome outcome) {
  switch (outcome) {
    case StepOutcome::kDone:
      return "done";
    case StepOutcome::kAlready:
      return "already so";
    case StepOutcome::kClosed:
      return "closed";
    case StepOutcome::kOwn:
      return "changed by the process itself";
    case StepOutcome::kDenied:
      return "denied";
    case StepOutcome::kNotRestorable:
      return "could not be restored";
    case StepOutcome::kFailed:
      return "failed";
  }
  return "";
}

bool UndoLog::Entry::changed() const {
  return std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.made || change.unsure; });
}

StepResult UndoLog::result_of(std::uint32_t id, StepOutcome outcome,
                              std::string_view message) const {
  StepResult result;
  result.outcome = outcome;
  result.id = id;
  result.at = wall_clock_now();
  write_text(result.message, message);
  if (id < entries_.size()) {
    const Entry& entry = entries_[id];
    result.cookie = entry.cookie;
    for (std::size_t i = 0; i < entry.changes.size(); ++i) {
      result.before[i] = entry.changes[i].old;
      result.after[i] = entry.changes[i].made ? entry.changes[i].now : entry.changes[i].old;
    }
  }
  return result;
}

StepResult UndoLog::track(const Target& target) {
  const auto id = static_cast<std::uint32_t>(entries_.size());
  if (entries_.size() >= kConnectionsMax) {
    return result_of(id, StepOutcome::kFailed,
                     fmt::format("more than {} connections", kConnectionsMax));
  }
  TAILWARD_CHECK(target.process < processes_.size());
  // The copy lives until the end of this function and no longer: see the header.
  const Result<probe::Descriptor> copy = processes_[target.process].duplicate(target.fd);
  if (!copy) {
    const bool denied = copy.error().kind == ErrorKind::kDenied;
    return result_of(id, denied ? StepOutcome::kDenied : StepOutcome::kClosed,
                     text_of(copy.error()));
  }
  const std::optional<std::uint64_t> cookie = cookie_of(copy->get());
  // The number was given to another socket between the listing and now.
  if (!cookie || inode_of(copy->get()) != target.inode)
    return result_of(id, StepOutcome::kClosed, "");
  Entry entry{target, *cookie, {}, false};
  for (const Setting& setting : settings_) {
    const Result<State> old = read_option(copy->get(), setting.option);
    if (!old) return result_of(id, outcome_of(old.error()), text_of(old.error()));
    entry.changes.push_back({*old, *old});
    // Nothing will be changed here, so there is no way back to rehearse.
    if (satisfies(*old, setting)) continue;
    if (const Result<void> fine = rehearse(setting, *old); !fine) {
      return result_of(id, StepOutcome::kNotRestorable, text_of(fine.error()));
    }
  }
  entries_.push_back(std::move(entry));
  return result_of(id, StepOutcome::kDone, "");
}

tl::expected<probe::Descriptor, StepResult> UndoLog::open(std::uint32_t id) const {
  TAILWARD_CHECK(id < entries_.size());
  const Entry& entry = entries_[id];
  Result<probe::Descriptor> copy = processes_[entry.target.process].duplicate(entry.target.fd);
  if (!copy && copy.error().kind == ErrorKind::kDenied) {
    return tl::unexpected(result_of(id, StepOutcome::kDenied, text_of(copy.error())));
  }
  // Another socket may have got the number: then it is not the one that was promised to be treated.
  if (!copy || cookie_of(copy->get()) != entry.cookie) {
    return tl::unexpected(result_of(id, StepOutcome::kClosed, ""));
  }
  return std::move(*copy);
}

StepResult UndoLog::apply(std::uint32_t id) {
  tl::expected<probe::Descriptor, StepResult> copy = open(id);
  if (!copy) return copy.error();
  Entry& entry = entries_[id];
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    // First pass: check everything, change nothing. A refusal in the middle would leave half a
    // change.
    const Result<State> now = read_option(copy->get(), settings_[i].option);
    if (!now) return result_of(id, outcome_of(now.error()), text_of(now.error()));
    Change& change = entry.changes[i];
    if (change.made) continue;
    if (changed_by_owner(settings_[i].option, *now, change.old)) {
      return result_of(id, StepOutcome::kOwn, info(settings_[i].option).name);
    }
    if (*now == change.old) continue;
    change.old = *now;  // an autotuned buffer may have grown, and now be too large to be had again
    if (satisfies(*now, settings_[i])) continue;
    if (const Result<void> fine = rehearse(settings_[i], *now); !fine) {
      return result_of(id, StepOutcome::kNotRestorable, text_of(fine.error()));
    }
  }
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    Change& change = entry.changes[i];
    if (change.made || satisfies(change.old, settings_[i])) continue;
    // Whether a setting that fails has had an effect is not known, so undo() restores it as well.
    change.unsure = true;
    const Result<State> now = set_option(copy->get(), settings_[i]);
    if (!now) {
      std::string message;
      // Settings made before the failing one are taken back: all of them or none.
      static_cast<void>(undo(copy->get(), entry, message));
      return result_of(id, outcome_of(now.error()), text_of(now.error()));
    }
    change = {change.old, *now, true, false};
  }
  return result_of(id, entry.changed() ? StepOutcome::kDone : StepOutcome::kAlready, "");
}

StepOutcome UndoLog::undo(int fd, Entry& entry, std::string& message) {
  StepOutcome outcome = StepOutcome::kAlready;
  // Backwards, as what was set last may stand on what was set before.
  for (std::size_t i = settings_.size(); i-- > 0;) {
    Change& change = entry.changes[i];
    if (!change.made && !change.unsure) continue;
    const Option option = settings_[i].option;
    const Result<State> now = read_option(fd, option);
    // The process has set the option itself meanwhile. Its value is the newer decision and stays.
    if (now && !change.unsure && changed_by_owner(option, *now, change.now) && *now != change.old) {
      change.made = false;
      if (outcome != StepOutcome::kFailed) outcome = StepOutcome::kOwn;
      continue;
    }
    const Result<void> done = restore_option(fd, option, change.old);
    if (done) {
      change.made = change.unsure = false;
      if (outcome == StepOutcome::kAlready) outcome = StepOutcome::kDone;
    } else {
      if (message.empty()) message = text_of(done.error());
      outcome = StepOutcome::kFailed;
    }
  }
  return outcome;
}

StepResult UndoLog::restore(std::uint32_t id) {
  tl::expected<probe::Descriptor, StepResult> copy = open(id);
  if (!copy) return copy.error();
  std::string message;
  const StepOutcome outcome = undo(copy->get(), entries_[id], message);
  return result_of(id, outcome, message);
}

bool UndoLog::is_refreshed(const Entry& entry) const {
  if (entry.gone) return false;
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    if (is_non_sticky(settings_[i].option) && entry.changes[i].made) return true;
  }
  return false;
}

std::size_t UndoLog::refreshed() const {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(),
                    [this](const Entry& entry) { return is_refreshed(entry); }));
}

void UndoLog::refresh() {
  for (std::uint32_t id = 0; id < entries_.size(); ++id) {
    if (!is_refreshed(entries_[id])) continue;
    const tl::expected<probe::Descriptor, StepResult> copy = open(id);
    // A closed connection is not looked for every 10 ms again.
    entries_[id].gone = !copy && copy.error().outcome == StepOutcome::kClosed;
    if (!copy) continue;
    for (const Setting& one : settings_) {
      if (is_non_sticky(one.option)) static_cast<void>(set_option(copy->get(), one));
    }
  }
}

void UndoLog::count(Rollback& rollback, StepOutcome outcome, const std::string& message) {
  switch (outcome) {
    case StepOutcome::kDone:
    case StepOutcome::kAlready:
      ++rollback.restored;
      break;
    case StepOutcome::kOwn:
      ++rollback.own;
      break;
    case StepOutcome::kClosed:
      ++rollback.closed;
      break;
    default:
      ++rollback.failed;
      if (rollback.message[0] == '\0') write_text(rollback.message, message);
  }
}

Rollback UndoLog::restore_all() {
  Rollback rollback;
  std::vector<std::uint32_t> missing;
  for (std::uint32_t id = 0; id < entries_.size(); ++id) {
    if (!entries_[id].changed()) {
      ++rollback.unchanged;
      continue;
    }
    const StepResult result = restore(id);
    if (result.outcome == StepOutcome::kClosed) {
      missing.push_back(id);
    } else {
      count(rollback, result.outcome, result.text());
    }
  }
  restore_strays(missing, rollback);
  return rollback;
}

// A descriptor that is gone from its process need not be the socket's last one: a child may have
// inherited it, or another process may have been sent it.
void UndoLog::restore_strays(const std::vector<std::uint32_t>& missing, Rollback& rollback) {
  if (missing.empty()) return;
  std::set<std::uint32_t> alive;
  std::vector<std::string>
      blind;  // for each process why its namespace could not be searched, or ""
  // By namespace: sockets of a container are not in our own list.
  for (const probe::Process& process : processes_) {
    Result<std::vector<tcp::SocketFacts>> sockets;
    const Result<void> entered =
        process.in_network_namespace([&sockets] { sockets = probe::dump_sockets(); });
    if (entered && sockets) {
      for (const tcp::SocketFacts& one : *sockets) alive.insert(one.inode);
      blind.emplace_back();
    } else {
      blind.push_back("it is not known whether a connection lives on elsewhere: " +
                      text_of(entered ? sockets.error() : entered.error()));
    }
  }
  for (const std::uint32_t id : missing) {
    Entry& entry = entries_[id];
    const std::string& why_blind = blind[entry.target.process];
    // Not found, but the search failed as well: to say "closed" would be a guess.
    if (!alive.contains(entry.target.inode) && !why_blind.empty()) {
      count(rollback, StepOutcome::kFailed, why_blind);
      continue;
    }
    if (!alive.contains(entry.target.inode)) {
      count(rollback, StepOutcome::kClosed, "");
      continue;
    }
    const probe::Descriptor copy = find_stray(entry);
    if (!copy.valid()) {
      count(rollback, StepOutcome::kFailed,
            "a connection was handed to a process that was not found");
      continue;
    }
    std::string message;
    const StepOutcome outcome = undo(copy.get(), entry, message);
    count(rollback, outcome, message);
  }
}

probe::Descriptor UndoLog::find_stray(const Entry& entry) const {
  probe::Descriptor found;
  const auto look = [&] {
    const auto list = probe::list_sockets({.port = entry.target.local_port, .options = false});
    if (!list) return;
    for (const tcp::SocketFacts& one : list->sockets) {
      if (one.inode != entry.target.inode || found.valid()) continue;
      const Result<probe::Process> owner = probe::Process::open(one.pid);
      if (!owner) continue;
      Result<probe::Descriptor> copy = owner->duplicate(one.fd);
      if (copy && cookie_of(copy->get()) == entry.cookie) found = std::move(*copy);
    }
  };
  static_cast<void>(processes_[entry.target.process].in_network_namespace(look));
  return found;
}

Rollback UndoLog::keep_all() const {
  Rollback rollback;
  for (const Entry& entry : entries_) ++(entry.changed() ? rollback.kept : rollback.unchanged);
  return rollback;
}

void UndoLog::adopt_track(const Target& target, const StepResult& result) {
  if (result.outcome != StepOutcome::kDone) return;
  TAILWARD_CHECK(result.id == entries_.size());
  Entry entry{target, result.cookie, {}, false};
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    entry.changes.push_back({result.before[i], result.before[i]});
  }
  entries_.push_back(std::move(entry));
}

void UndoLog::expect_apply(std::uint32_t id) {
  for (Change& change : entries_[id].changes) change.unsure = true;
}

void UndoLog::adopt_apply(std::uint32_t id, const StepResult& result) {
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    // A non-sticky option may read as before although it was set.
    const bool made = result.outcome == StepOutcome::kDone &&
                      (is_non_sticky(settings_[i].option) || result.after[i] != result.before[i]);
    entries_[id].changes[i] = {result.before[i], result.after[i], made, false};
  }
}

void UndoLog::adopt_restore(std::uint32_t id) {
  for (Change& change : entries_[id].changes) change.made = change.unsure = false;
}

}  // namespace tailward::treat
