#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "probe/proc_files.h"
#include "probe/sockets.h"

namespace tailward::probe {
namespace {

constexpr const char* kOldKernel = "Linux 5.6 or newer is needed, or a sandbox forbids the call";

Error no_process(int pid) {
  return {ErrorKind::kInvalid, fmt::format("there is no process {}", pid),
          "pgrep -a NAME finds a process's number"};
}

Error open_error(int pid, int error) {
  switch (error) {
    case ENOSYS:
      return {ErrorKind::kUnsupported, "this kernel has no pidfd_open()", kOldKernel};
    case EPERM:
      return {ErrorKind::kUnsupported, "a sandbox forbids pidfd_open()",
              "run outside the container, or with a seccomp profile that allows it"};
    case EMFILE:
    case ENFILE:
      return {ErrorKind::kOverloaded, "too many open files", "raise ulimit -n"};
    default:
      return no_process(pid);
  }
}

Descriptor open_namespace(int pid) {
  return Descriptor(::open(fmt::format("/proc/{}/ns/net", pid).c_str(), O_RDONLY | O_CLOEXEC));
}

// Same file system object: how namespaces are told apart (namespaces(7)).
bool is_our_namespace(const Descriptor& space) {
  struct stat first {};
  struct stat second {};
  return ::fstat(space.get(), &first) == 0 && ::stat("/proc/thread-self/ns/net", &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

Error namespace_error(const Process& process, int error) {
  return {error == EPERM || error == EACCES ? ErrorKind::kDenied : ErrorKind::kInternal,
          fmt::format("cannot enter the network namespace of process {} ({}): {}", process.pid(),
                      process.name(), std::strerror(error)),
          "it needs CAP_SYS_ADMIN: run as root, or inside the container"};
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

int Descriptor::release() { return std::exchange(fd_, -1); }

Result<Process> Process::open(int pid) {
  if (pid <= 0) return fail(no_process(pid));
  const long fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd >= 0) {
    Process process(pid, Descriptor(static_cast<int>(fd)), open_namespace(pid));
    // Only if it still runs is the namespace certainly that of the process that the pidfd holds.
    if (!process.running()) {
      return fail(ErrorKind::kInvalid, fmt::format("process {} has ended", pid),
                  "only its parent has not taken notice yet");
    }
    return process;
  }
  const int error = errno;
  // The number of a thread is no number of a process, though /proc answers to both.
  if (const int group = thread_group(pid); group > 0 && group != pid) {
    return fail(ErrorKind::kInvalid, fmt::format("{} is a thread of process {}", pid, group),
                fmt::format("use {}", group));
  }
  return fail(open_error(pid, error));
}

bool Process::running() const {
  // Readable from the moment that it has ended, also while it is a zombie (pidfd_open(2)).
  pollfd state{pidfd_.get(), POLLIN, 0};
  return ::poll(&state, 1, 0) == 0;
}

std::string Process::name() const {
  std::string name = read_small_file(fmt::format("/proc/{}/comm", pid_)).value_or("");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

Error denied_access(int pid) {
  const std::string who = fmt::format("process {} ({})", pid, process_name(pid));
  const std::optional<unsigned> owner = effective_uid(pid);
  if (owner && *owner != ::geteuid()) {
    return {ErrorKind::kDenied,
            fmt::format("may not look into {}: it runs as uid {}, this as uid {}", who, *owner,
                        ::geteuid()),
            "run as root (CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH), or as that user"};
  }
  const std::string scope =
      read_small_file("/proc/sys/kernel/yama/ptrace_scope").value_or("0").substr(0, 1);
  if (scope != "0") {
    return {ErrorKind::kDenied,
            fmt::format("may not look into {}: Yama forbids it (kernel.yama.ptrace_scope = {})",
                        who, scope),
            scope == "3" ? "with 3, nobody may, until the next boot"
                         : "run as root (CAP_SYS_PTRACE), or: sysctl kernel.yama.ptrace_scope=0"};
  }
  return {ErrorKind::kDenied,
          fmt::format("may not look into {}: it has changed its user or privileges, or a sandbox "
                      "forbids it",
                      who),
          "run as root (CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH)"};
}

Result<Descriptor> Process::duplicate(int fd) const {
  const long copy = ::syscall(SYS_pidfd_getfd, pidfd_.get(), fd, 0);
  if (copy >= 0) return Descriptor(static_cast<int>(copy));
  switch (errno) {
    case EPERM:
      return fail(denied_access(pid_));
    case ENOSYS:
      return fail(ErrorKind::kUnsupported, "this kernel has no pidfd_getfd()", kOldKernel);
    case EMFILE:
    case ENFILE:
      return fail(ErrorKind::kOverloaded, "too many open files", "raise ulimit -n");
    case ESRCH:
      return fail(ErrorKind::kInvalid, fmt::format("process {} has ended", pid_));
    default:
      return fail(ErrorKind::kInvalid, fmt::format("process {} has no descriptor {}", pid_, fd));
  }
}

Result<void> Process::in_network_namespace(UniqueFunction<void()> task) const {
  Descriptor retried;
  if (!network_.valid()) {
    retried = open_namespace(pid_);
    const int unopened = errno;
    if (!running()) return fail(ErrorKind::kInvalid, fmt::format("process {} has ended", pid_));
    if (!retried.valid()) return fail(namespace_error(*this, unopened));
  }
  const Descriptor& space = network_.valid() ? network_ : retried;
  if (is_our_namespace(space)) {
    task();
    return {};
  }
  int error = 0;
  try {
    std::thread([&] {
      if (::setns(space.get(), CLONE_NEWNET) != 0) {
        error = errno;
      } else {
        task();
      }
    }).join();
  } catch (const std::system_error& no_thread) {
    return fail(ErrorKind::kOverloaded, fmt::format("cannot start a thread: {}", no_thread.what()));
  }
  if (error != 0) return fail(namespace_error(*this, error));
  return {};
}

}  // namespace tailward::probe
