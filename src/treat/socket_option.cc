#include "treat/socket_option.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "probe/sockets.h"

// Debian 12's headers are older than these: include/uapi/linux/tcp.h, asm-generic/socket.h.
#ifndef TCP_RTO_MIN_US
#define TCP_RTO_MIN_US 45
#endif
#ifndef TCP_DELACK_MAX_US
#define TCP_DELACK_MAX_US 46
#endif
#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72
#endif

namespace tailward::treat {
namespace {

// SOCK_SNDBUF_LOCK and SOCK_RCVBUF_LOCK of the kernel's net/sock.h, as SO_BUF_LOCK shows them
// (Linux 5.17).
constexpr int kSendLock = 1;
constexpr int kReceiveLock = 2;

struct Name {
  int level;
  int number;
};

Name name_of(Option option) {
  switch (option) {
    case Option::kNodelay:
      return {IPPROTO_TCP, TCP_NODELAY};
    case Option::kQuickack:
      return {IPPROTO_TCP, TCP_QUICKACK};
    case Option::kCork:
      return {IPPROTO_TCP, TCP_CORK};
    case Option::kSndbuf:
      return {SOL_SOCKET, SO_SNDBUF};
    case Option::kRcvbuf:
      return {SOL_SOCKET, SO_RCVBUF};
    case Option::kNotsentLowat:
      return {IPPROTO_TCP, TCP_NOTSENT_LOWAT};
    case Option::kUserTimeout:
      return {IPPROTO_TCP, TCP_USER_TIMEOUT};
    case Option::kKeepalive:
      return {SOL_SOCKET, SO_KEEPALIVE};
    case Option::kKeepidle:
      return {IPPROTO_TCP, TCP_KEEPIDLE};
    case Option::kKeepintvl:
      return {IPPROTO_TCP, TCP_KEEPINTVL};
    case Option::kKeepcnt:
      return {IPPROTO_TCP, TCP_KEEPCNT};
    case Option::kRtoMin:
      return {IPPROTO_TCP, TCP_RTO_MIN_US};
    case Option::kDelackMax:
      return {IPPROTO_TCP, TCP_DELACK_MAX_US};
  }
  return {-1, -1};
}

int lock_of(Option option) { return option == Option::kSndbuf ? kSendLock : kReceiveLock; }

tl::unexpected<Error> failure(int error, const std::string& what) {
  const ErrorKind kind = error == ENOPROTOOPT                ? ErrorKind::kUnsupported
                         : error == EPERM || error == EACCES ? ErrorKind::kDenied
                         : error == EINVAL || error == EOPNOTSUPP || error == ENOTSOCK
                             ? ErrorKind::kInvalid
                             : ErrorKind::kInternal;
  return fail(kind, fmt::format("{}: {}", what,
                                kind == ErrorKind::kUnsupported ? "this kernel does not have it"
                                                                : std::strerror(error)));
}

Result<int> get(int fd, Name name, std::string_view what) {
  int value = 0;
  socklen_t size = sizeof value;
  if (::getsockopt(fd, name.level, name.number, &value, &size) != 0) {
    return failure(errno, fmt::format("cannot read {}", what));
  }
  return value;
}

Result<void> put(int fd, Name name, int value, std::string_view what) {
  if (::setsockopt(fd, name.level, name.number, &value, sizeof value) != 0) {
    return failure(errno, fmt::format("cannot set {} to {}", what, value));
  }
  return {};
}

Result<void> set_lock(int fd, Option option, bool locked) {
  constexpr Name kLock{SOL_SOCKET, SO_BUF_LOCK};
  const Result<int> present = get(fd, kLock, "SO_BUF_LOCK");
  if (!present) return fail(present.error());
  const int bit = lock_of(option);
  // The other buffer's bit is not ours.
  const int wanted = locked ? *present | bit : *present & ~bit;
  return wanted == *present ? Result<void>{} : put(fd, kLock, wanted, "SO_BUF_LOCK");
}

// A size as setsockopt(2) takes it. Beyond net.core.wmem_max it takes CAP_NET_ADMIN, and without
// that the kernel sets the limit instead and says nothing.
Result<void> set_size(int fd, Option option, int bytes) {
  const Name name = name_of(option);
  const std::string_view what = info(option).name;
  if (const Result<void> done = put(fd, name, bytes, what); !done) return done;
  const Result<int> got = get(fd, name, what);
  if (!got) return fail(got.error());
  // The kernel doubles what is set, for its own bookkeeping (socket(7)).
  if (*got >= 2 * bytes) return {};
  const int force = option == Option::kSndbuf ? SO_SNDBUFFORCE : SO_RCVBUFFORCE;
  if (put(fd, {SOL_SOCKET, force}, bytes, what)) return {};
  return fail(ErrorKind::kDenied,
              fmt::format("{}: {} bytes are beyond this system's limit", what, bytes),
              fmt::format("CAP_NET_ADMIN, or a higher net.core.{}mem_max",
                          option == Option::kSndbuf ? 'w' : 'r'));
}

bool restored(Option option, const State& now, const State& old) {
  // While it is autotuned the kernel may have changed the size by now.
  if (is_buffer(option)) {
    // Halves are compared: sizes are set in halves, so an odd one comes back one smaller.
    return now.locked == old.locked && (!old.locked || now.value / 2 == old.value / 2);
  }
  return is_non_sticky(option) || now.value == old.value;
}

}  // namespace

Result<State> read_option(int fd, Option option) {
  const Result<int> value = get(fd, name_of(option), info(option).name);
  if (!value) return fail(value.error());
  State state{*value};
  if (is_buffer(option)) {
    const Result<int> locks = get(fd, {SOL_SOCKET, SO_BUF_LOCK}, "SO_BUF_LOCK");
    if (!locks) return fail(locks.error());
    state.locked = (*locks & lock_of(option)) != 0;
  }
  return state;
}

Result<State> set_option(int fd, const Setting& setting) {
  const Result<void> done =
      setting.automatic ? set_lock(fd, setting.option, false)
      : is_buffer(setting.option)
          ? set_size(fd, setting.option, setting.value)
          : put(fd, name_of(setting.option), setting.value, info(setting.option).name);
  if (!done) return fail(done.error());
  return read_option(fd, setting.option);
}

Result<void> restore_option(int fd, Option option, const State& old) {
  const Result<State> present = read_option(fd, option);
  if (!present) return fail(present.error());
  if (*present == old) return {};
  Result<void> done;
  if (is_buffer(option)) {
    // The size first: setting it locks the buffer, whatever the lock was.
    if (present->value != old.value) done = set_size(fd, option, old.value / 2);
    // Even when the size could not be had, the lock is restored.
    const Result<void> lock = set_lock(fd, option, old.locked);
    if (done) done = lock;
  } else {
    done = put(fd, name_of(option), old.value, info(option).name);
  }
  if (!done) return done;
  const Result<State> now = read_option(fd, option);
  if (!now) return fail(now.error());
  if (restored(option, *now, old)) return {};
  return fail(ErrorKind::kInternal, fmt::format("{} is {} and was {}", info(option).name,
                                                to_string(option, *now), to_string(option, old)));
}

Result<void> rehearse(const Setting& setting, const State& old) {
  // A socket of our own: a refusal there harms nobody.
  const probe::Descriptor stage(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!stage.valid()) return failure(errno, "cannot make a socket");
  if (const Result<State> done = set_option(stage.get(), setting); !done) {
    return fail(done.error());
  }
  if (const Result<void> back = restore_option(stage.get(), setting.option, old); !back) {
    return fail(back.error().in("it could not be restored"));
  }
  return {};
}

}  // namespace tailward::treat
