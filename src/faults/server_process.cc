#include "faults/server_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <utility>

extern char** environ;

namespace tailward::faults {
namespace {

constexpr int kStartMs =
    10'000;  // a start takes milliseconds; under sanitizers on a busy machine, seconds
constexpr int kStopMs = 2'000;

struct Pipe {
  int read = -1;
  int write = -1;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  void close_all() {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
};

// The first line, without its end. Returns what has come so far when nothing comes for
// `timeout_ms`.
std::string read_line(int fd, int timeout_ms) {
  std::string line;
  pollfd wait{fd, POLLIN, 0};
  char byte = 0;
  while (line.size() < 4096) {
    const int ready = ::poll(&wait, 1, timeout_ms);
    // Ctrl-C interrupts the measurement, not the server: the line still comes.
    if (ready < 0 && errno == EINTR) continue;
    if (ready != 1) break;
    const ssize_t got = ::read(fd, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1 || byte == '\n') break;
    line.push_back(byte);
  }
  return line;
}

Result<pid_t> spawn(const std::vector<std::string>& arguments, const Pipe& in, const Pipe& out) {
  std::vector<char*> argv;
  std::string name = "tailward";
  argv.push_back(name.data());
  std::vector<std::string> copies = arguments;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
  // A process group of its own: Ctrl-C reaches only the parent, and the parent ends the server.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return fail(ErrorKind::kInternal,
                fmt::format("cannot start the server: {}", std::strerror(error)),
                "is /proc mounted, and may this user start processes?");
  }
  return pid;
}

}  // namespace

Result<ServerProcess> ServerProcess::start(const std::vector<std::string>& arguments) {
  Pipe in;
  Pipe out;
  if (!in.open() || !out.open()) {
    in.close_all();
    return fail(ErrorKind::kOverloaded, fmt::format("cannot make a pipe: {}", std::strerror(errno)),
                "too many open files? see ulimit -n");
  }
  const Result<pid_t> pid = spawn(arguments, in, out);
  if (!pid) {
    in.close_all();
    out.close_all();
    return fail(pid.error());
  }
  ::close(in.read);
  ::close(out.write);
  ServerProcess server(*pid, in.write);
  const std::string line = read_line(out.read, kStartMs);
  ::close(out.read);
  unsigned port = 0;
  if (line.rfind("port ", 0) == 0) {
    std::from_chars(line.data() + 5, line.data() + line.size(), port);
  }
  if (port == 0 || port > UINT16_MAX) {
    return fail(
        ErrorKind::kInternal,
        fmt::format("the experiment's server did not start{}{}", line.empty() ? "" : ": ", line),
        "its own error stands above, if it printed one");
  }
  server.port_ = static_cast<std::uint16_t>(port);
  return server;
}

ServerProcess::ServerProcess(ServerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::exchange(other.input_, -1)),
      port_(other.port_),
      ended_how_(std::move(other.ended_how_)) {}

ServerProcess::~ServerProcess() {
  if (input_ >= 0) ::close(input_);
  if (pid_ <= 0) return;
  for (int waited = 0; waited < kStopMs; waited += 5) {
    if (!running()) return;
    ::poll(nullptr, 0, 5);
  }
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool ServerProcess::running() {
  if (pid_ <= 0) return false;
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return true;
  if (ended == pid_) {
    note_end(status);
  } else {
    // No status is left: where SIGCHLD is ignored, the kernel reaps children by itself.
    ended_how_ = "ended, nobody knows how";
    pid_ = -1;
  }
  return false;
}

void ServerProcess::note_end(int status) {
  ended_how_ = WIFSIGNALED(status) ? fmt::format("killed by signal {} ({})", WTERMSIG(status),
                                                 strsignal(WTERMSIG(status)))
                                   : fmt::format("ended with status {}", WEXITSTATUS(status));
  pid_ = -1;
}

ServerProcess::Usage ServerProcess::usage() const {
  Usage usage;
  if (pid_ <= 0) return usage;
  std::ifstream status(fmt::format("/proc/{}/status", pid_));
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0)
      usage.resident_peak_bytes = std::stoull(line.substr(6)) * 1024;
  }
  std::ifstream stat(fmt::format("/proc/{}/stat", pid_));
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  // Fields 14 and 15 of proc(5). Counting starts after the name, because it may contain spaces.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return usage;
  unsigned long user = 0;
  unsigned long system = 0;
  if (std::sscanf(text.c_str() + name_end + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) == 2) {
    usage.cpu_seconds =
        static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  return usage;
}

ParentWatch::ParentWatch(UniqueFunction<void()> gone) : stop_(::eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([stop = stop_, gone = std::move(gone)]() mutable {
    pollfd ends[2] = {{STDIN_FILENO, POLLIN, 0}, {stop, POLLIN, 0}};
    char ignored[256];
    for (;;) {
      if (::poll(ends, 2, -1) < 0) continue;
      if (ends[1].revents != 0) return;
      if (::read(STDIN_FILENO, ignored, sizeof ignored) <= 0) break;
    }
    gone();
  });
}

ParentWatch::~ParentWatch() {
  const std::uint64_t one = 1;
  // An eventfd that is not full takes eight bytes: nothing to handle.
  static_cast<void>(::write(stop_, &one, sizeof one) == sizeof one);
  thread_.join();
  ::close(stop_);
}

}  // namespace tailward::faults
