#include "net/link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include "net/link_forwarder.h"

namespace tailward::net {
namespace {

constexpr char kInterface[] = "tw0";
// How many packets the device keeps for the forwarder before it drops some. It is more than any
// window that TCP opens by itself (6 MiB by default are 4,400 full segments).
constexpr int kDeviceQueue = 20'000;
// struct virtio_net_hdr, whose header C++ cannot read: how a segment is to be cut and summed. It
// travels with its packet.
constexpr std::size_t kOffloadHeader = 10;
// RFC 791: what every host must take in one piece. The upper end is IPv4's total length.
constexpr int kMtuMin = 576;
constexpr int kMtuMax = 65'535;

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      if (fd_ >= 0) ::close(fd_);
      fd_ = other.release();
    }
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct LinkSide {
  Fd space;   // the network namespace
  Fd device;  // the TUN device's other end
};

tl::unexpected<Error> failed(const char* what, int error) {
  std::string message = fmt::format("cannot {}: {}", what, std::strerror(error));
  // The user can do something about these two groups; everything else is a defect.
  if (error == EPERM || error == EACCES) {
    return fail(
        ErrorKind::kDenied, std::move(message),
        "run it as root, or with CAP_SYS_ADMIN and CAP_NET_ADMIN, or allow user namespaces");
  }
  if (error == ENOENT || error == ENODEV || error == ENXIO || error == ENOSYS) {
    return fail(ErrorKind::kUnsupported, std::move(message),
                "the kernel's TUN driver (/dev/net/tun) and network namespaces are needed");
  }
  return fail(ErrorKind::kInternal, std::move(message));
}

sockaddr ipv4(const std::string& address) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  ::inet_pton(AF_INET, address.c_str(), &name.sin_addr);
  sockaddr out{};
  std::memcpy(&out, &name, sizeof out);
  return out;
}

ifreq request_for(const char* interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
  return request;
}

// The settings of an interface of the calling thread's namespace.
Result<void> bring_up(int socket, const char* interface) {
  ifreq request = request_for(interface);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(socket, SIOCSIFFLAGS, &request) != 0) return failed("bring an interface up", errno);
  return {};
}

Result<void> configure(const std::string& address, int mtu) {
  // Any socket will do for these ioctls.
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return failed("make a socket", errno);
  const auto set = [&socket](unsigned long what, auto fill) {
    ifreq request = request_for(kInterface);
    fill(request);
    return ::ioctl(socket.get(), what, &request) == 0;
  };
  const bool set_all =
      set(SIOCSIFMTU, [mtu](ifreq& request) { request.ifr_mtu = mtu; }) &&
      set(SIOCSIFTXQLEN, [](ifreq& request) { request.ifr_qlen = kDeviceQueue; }) &&
      set(SIOCSIFADDR, [&](ifreq& request) { request.ifr_addr = ipv4(address); }) &&
      set(SIOCSIFNETMASK, [](ifreq& request) { request.ifr_netmask = ipv4("255.255.255.252"); });
  if (!set_all) return failed("give the link's interface its address", errno);
  if (const Result<void> up = bring_up(socket.get(), kInterface); !up) return up;
  return bring_up(socket.get(), "lo");
}

// IPv6 would only announce itself on a link that carries none. Where /proc/sys cannot be written it
// does, and the forwarder ignores it.
void silence_ipv6() {
  for (const char* which : {"all", "default"}) {
    std::ofstream(fmt::format("/proc/sys/net/ipv6/conf/{}/disable_ipv6", which)) << "1";
  }
}

// Puts the calling thread into a new namespace and fills it.
Result<LinkSide> make_side(const std::string& address, const LinkShape& shape) {
  // Of the calling thread alone: the process stays where it is.
  if (::unshare(CLONE_NEWNET) != 0) return failed("make a network namespace", errno);
  LinkSide side;
  side.space = Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (side.space.get() < 0) return failed("open the network namespace", errno);
  side.device = Fd(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (side.device.get() < 0) return failed("open /dev/net/tun", errno);
  ifreq request = request_for(kInterface);
  request.ifr_flags = static_cast<short>(IFF_TUN | IFF_NO_PI | (shape.offload ? IFF_VNET_HDR : 0));
  if (::ioctl(side.device.get(), TUNSETIFF, &request) != 0) {
    return failed("make a TUN device", errno);
  }
  // Segments of up to 64 KiB pass uncut, as between a host and its network card. Without it the
  // link has one packet for each segment on the wire.
  constexpr unsigned long kUncut = TUN_F_CSUM | TUN_F_TSO4;
  if (shape.offload && ::ioctl(side.device.get(), TUNSETOFFLOAD, kUncut) != 0) {
    return failed("have a TUN device leave segments uncut", errno);
  }
  silence_ipv6();
  if (const Result<void> done = configure(address, shape.mtu); !done) return fail(done.error());
  return side;
}

// What lives on in a namespace does so by its threads: the thread ends, the descriptors remain.
template <class Task>
void on_a_thread(Task task) {
  std::thread(std::move(task)).join();
}

// A line of /proc/thread-self/status, without its name; empty when there is none.
std::string status_line(const std::string& name) {
  std::ifstream status("/proc/thread-self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) == 0) return line.substr(name.size() + 1);
  }
  return {};
}

bool single_threaded() { return status_line("Threads") == "\t1"; }

bool privileged() {
  const std::string effective = status_line("CapEff");
  const std::uint64_t bits = std::strtoull(effective.c_str(), nullptr, 16);
  return (bits >> CAP_SYS_ADMIN & 1) != 0 && (bits >> CAP_NET_ADMIN & 1) != 0;
}

bool write_line(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.flush();
  return file.good();
}

// Gives this process, which must have one thread, privileges over what it makes from now on. It
// keeps its user and its files.
bool enter_user_namespace() {
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  if (!single_threaded() || ::unshare(CLONE_NEWUSER) != 0) return false;
  // user_namespaces(7): gid_map may be written only after setgroups is denied.
  return write_line("/proc/self/uid_map", fmt::format("{0} {0} 1", uid)) &&
         write_line("/proc/self/setgroups", "deny") &&
         write_line("/proc/self/gid_map", fmt::format("{0} {0} 1", gid));
}

}  // namespace

class Link::Impl {
 public:
  Impl(std::array<LinkSide, 2> sides, Fd stop, const LinkShape& shape, std::uint64_t seed)
      : spaces{std::move(sides[0].space), std::move(sides[1].space)},
        forwarder({sides[0].device.release(), sides[1].device.release()}, stop.release(), shape,
                  seed, shape.offload ? kOffloadHeader : 0) {}

  std::array<Fd, 2> spaces;
  LinkForwarder forwarder;
};

Link::Link(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Link::~Link() = default;

Result<std::unique_ptr<Link>> Link::create(const LinkShape& both_ways, std::uint64_t seed) {
  if (both_ways.mtu < kMtuMin || both_ways.mtu > kMtuMax) {
    return fail(ErrorKind::kInvalid, fmt::format("an MTU of {} bytes", both_ways.mtu),
                fmt::format("{} to {}", kMtuMin, kMtuMax));
  }
  // Unprivileged users get by with a user namespace, where the distribution allows it.
  if (!privileged()) static_cast<void>(enter_user_namespace());
  std::array<LinkSide, 2> sides;
  for (const End end : {End::kClient, End::kServer}) {
    Result<LinkSide> side = fail(ErrorKind::kInternal, "");
    on_a_thread([&] { side = make_side(address(end), both_ways); });
    if (!side) return fail(side.error().in("a link of our own"));
    sides[static_cast<std::size_t>(end)] = std::move(*side);
  }
  Fd stop(::eventfd(0, EFD_CLOEXEC));
  if (stop.get() < 0) return failed("make an eventfd for a link", errno);
  return std::unique_ptr<Link>(
      new Link(std::make_unique<Impl>(std::move(sides), std::move(stop), both_ways, seed)));
}

// 198.18.0.0/15 is for tests of network devices (RFC 2544) and routed nowhere.
std::string Link::address(End end) { return end == End::kClient ? "198.18.0.1" : "198.18.0.2"; }

std::string Link::interface_name() { return kInterface; }

Result<void> Link::enter(End end) {
  const int space = impl_->spaces[static_cast<std::size_t>(end)].get();
  if (::setns(space, CLONE_NEWNET) != 0) return failed("enter a network namespace", errno);
  return {};
}

Result<void> Link::run_inside(End end, UniqueFunction<void()> task) {
  Result<void> entered;
  on_a_thread([&] {
    entered = enter(end);
    if (entered) task();
  });
  return entered;
}

std::string Link::namespace_path(End end) const {
  return fmt::format("/proc/{}/fd/{}", ::getpid(),
                     impl_->spaces[static_cast<std::size_t>(end)].get());
}

void Link::shape(End from, const LinkShape& shape) {
  impl_->forwarder.shape(static_cast<std::size_t>(from), shape);
}

LinkCounters Link::counters(End from) const {
  return impl_->forwarder.counters(static_cast<std::size_t>(from));
}

}  // namespace tailward::net
