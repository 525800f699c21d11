#include "probe/proc_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>

#include "probe/sockets.h"

namespace tailward::probe {
namespace {

constexpr std::size_t kFileMax = std::size_t{4} << 20;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

template <class Number>
std::optional<Number> to_number(std::string_view text) {
  Number number{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

// The columns of a line of /proc/<pid>/status.
std::vector<std::string_view> status_columns(std::string_view status, std::string_view key) {
  std::vector<std::string_view> columns;
  std::size_t at = status.find(fmt::format("\n{}:", key));
  if (at == std::string_view::npos) return columns;
  at += key.size() + 2;
  std::string_view line = status.substr(at, status.find('\n', at) - at);
  while (true) {
    const std::size_t begin = line.find_first_not_of("\t ");
    if (begin == std::string_view::npos) return columns;
    line.remove_prefix(begin);
    columns.push_back(line.substr(0, line.find_first_of("\t ")));
    line.remove_prefix(columns.back().size());
  }
}

// "socket:[123]"
std::optional<std::uint32_t> socket_inode(std::string_view link) {
  constexpr std::string_view kBegin = "socket:[";
  if (!link.starts_with(kBegin) || !link.ends_with(']')) return std::nullopt;
  return to_number<std::uint32_t>(link.substr(kBegin.size(), link.size() - kBegin.size() - 1));
}

}  // namespace

std::optional<std::string> read_small_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  std::string text;
  char piece[16 << 10];
  while (text.size() < kFileMax) {
    const ssize_t got = ::read(file.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(piece, static_cast<std::size_t>(got));
  }
  return text;
}

std::string process_name(int pid) {
  std::string name = read_small_file(fmt::format("/proc/{}/comm", pid)).value_or("?");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

int thread_group(int pid) {
  const std::string status = read_small_file(fmt::format("/proc/{}/status", pid)).value_or("");
  const std::vector<std::string_view> columns = status_columns(status, "Tgid");
  return columns.empty() ? 0 : to_number<int>(columns[0]).value_or(0);
}

std::optional<unsigned> effective_uid(int pid) {
  const std::string status = read_small_file(fmt::format("/proc/{}/status", pid)).value_or("");
  // Real, effective, saved, file system.
  const std::vector<std::string_view> columns = status_columns(status, "Uid");
  if (columns.size() < 2) return std::nullopt;
  return to_number<unsigned>(columns[1]);
}

std::vector<int> all_pids() {
  std::vector<int> pids;
  const Folder folder(::opendir("/proc"));
  if (!folder) return pids;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (const std::optional<int> pid = to_number<int>(entry->d_name)) pids.push_back(*pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

OpenSockets open_sockets(int pid) {
  OpenSockets open;
  const Folder folder(::opendir(fmt::format("/proc/{}/fd", pid).c_str()));
  if (!folder) {
    open.error = errno;
    return open;
  }
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) {
      open.error = errno;
      break;
    }
    const std::optional<int> fd = to_number<int>(entry->d_name);
    if (!fd) continue;
    char link[64];
    const ssize_t size = ::readlinkat(::dirfd(folder.get()), entry->d_name, link, sizeof link);
    if (size < 0) {
      // The listing is for all, the links are for the privileged (proc_pid_fd(5)).
      if (errno == EACCES || errno == EPERM) {
        open.error = errno;
        break;
      }
      ++open.vanished;
      continue;
    }
    if (const auto inode = socket_inode({link, static_cast<std::size_t>(size)})) {
      open.sockets.push_back({*fd, *inode});
    }
  }
  std::sort(open.sockets.begin(), open.sockets.end(),
            [](const OpenSocket& a, const OpenSocket& b) { return a.fd < b.fd; });
  return open;
}

}  // namespace tailward::probe
