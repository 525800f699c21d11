#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "probe/descriptor_facts.h"
#include "probe/inet_diag.h"
#include "probe/proc_files.h"
#include "probe/sockets.h"

namespace tailward::probe {
namespace {

using ByInode = std::unordered_map<std::uint32_t, tcp::SocketFacts>;

Error ended(int pid) {
  return {ErrorKind::kInvalid, fmt::format("process {} ended while it was looked at", pid)};
}

// Where the process's network namespace is named; 0 when that may not be seen.
ino_t namespace_of(int pid) {
  struct stat there {};
  return ::stat(fmt::format("/proc/{}/ns/net", pid).c_str(), &there) == 0 ? there.st_ino : 0;
}

// The kind of a socket that may not be duplicated, by the name that its protocol has for itself.
SocketKind kind_by_name(int pid, int fd) {
  char name[64] = {};
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  if (::getxattr(path.c_str(), "system.sockprotoname", name, sizeof name - 1) <= 0) {
    return SocketKind::kOther;
  }
  if (std::strcmp(name, "TCP") == 0 || std::strcmp(name, "TCPv6") == 0) return SocketKind::kTcp;
  return std::strncmp(name, "UNIX", 4) == 0 ? SocketKind::kUnix : SocketKind::kOther;
}

class Search {
 public:
  explicit Search(const SocketSearch& asked) : asked_(asked) {}

  Result<SocketList> by_pid(int pid) {
    const Result<Process> process = Process::open(pid);
    if (!process) return fail(process.error());
    const OpenSockets open = open_sockets(pid);
    if (open.error != 0) {
      if (!process->running() || open.error == ESRCH || open.error == ENOENT) {
        return fail(ended(pid));
      }
      return fail(denied_access(pid));
    }
    look_at(*process, open);
    if (list_.sockets.empty() && !process->running()) return fail(ended(pid));
    if (!asked_.port) return std::move(list_);
    std::erase_if(list_.sockets, [&](const auto& one) { return one.local.port != *asked_.port; });
    if (!list_.sockets.empty()) return std::move(list_);
    return fail(ErrorKind::kInvalid,
                fmt::format("process {} ({}) has no TCP socket on port {}", pid, process->name(),
                            *asked_.port),
                "leave out --port to see all of its sockets");
  }

  Result<SocketList> by_port(std::uint16_t port) {
    const DumpRequest request{.local_port = port};
    Result<std::vector<tcp::SocketFacts>> here = dump(request);
    if (!here) return fail(here.error());
    std::erase_if(*here, [](const tcp::SocketFacts& one) { return one.inode == 0; });
    if (here->empty()) return elsewhere(request);
    unreadable_ = 0;
    owners_of(*here, all_pids());
    if (!list_.pids.empty()) return std::move(list_);
    if (unreadable_ == 0) return fail(nobody(port));  // gone in the meantime
    // Somebody has it whose descriptors are not for us: what is known without them.
    list_.denied = here->size();
    list_.why_denied =
        Error{ErrorKind::kDenied,
              fmt::format("port {} belongs to a process of uid {} that this user may not look into",
                          port, here->front().uid),
              "run as root (CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH), or as that user"};
    list_.sockets = std::move(*here);
    return std::move(list_);
  }

 private:
  // In the namespaces of other processes: containers.
  Result<SocketList> elsewhere(const DumpRequest& request) {
    struct stat own_space {};
    static_cast<void>(::stat("/proc/thread-self/ns/net", &own_space));
    std::map<ino_t, std::vector<int>> spaces;
    for (const int pid : all_pids()) spaces[namespace_of(pid)].push_back(pid);
    spaces.erase(0);
    spaces.erase(own_space.st_ino);
    for (const auto& [space, pids] : spaces) {
      const Result<Process> process = Process::open(pids.front());
      if (!process) continue;
      Result<std::vector<tcp::SocketFacts>> there;
      if (!process->in_network_namespace([&] { there = dump(request); }) || !there) continue;
      owners_of(*there, pids);
    }
    if (!list_.pids.empty()) return std::move(list_);
    return fail(nobody(*request.local_port));
  }

  static Error nobody(std::uint16_t port) {
    for (const char* table : {"udp", "udp6"}) {
      const std::string text =
          read_small_file(fmt::format("/proc/thread-self/net/{}", table)).value_or("");
      // "sl: LOCAL:PORT REMOTE:PORT …" in hexadecimal; remote ports are followed by the state.
      if (text.find(fmt::format(":{:04X} 0000", port)) == std::string::npos) continue;
      return {ErrorKind::kInvalid, fmt::format("port {} is a UDP port here, not a TCP one", port),
              "only TCP sockets are looked at"};
    }
    return {ErrorKind::kInvalid, fmt::format("nothing uses TCP port {}", port),
            "ss -tlnp lists the ports in use, and by whom"};
  }

  void owners_of(const std::vector<tcp::SocketFacts>& wanted, const std::vector<int>& pids) {
    std::unordered_set<std::uint32_t> inodes;
    for (const tcp::SocketFacts& one : wanted) inodes.insert(one.inode);
    for (const int pid : pids) {
      const OpenSockets open = open_sockets(pid);
      if (open.error == EACCES || open.error == EPERM) ++unreadable_;
      if (std::none_of(open.sockets.begin(), open.sockets.end(),
                       [&](const OpenSocket& one) { return inodes.contains(one.inode); })) {
        continue;
      }
      const Result<Process> process = Process::open(pid);
      if (!process) {
        ++list_.vanished;
        continue;
      }
      look_at(*process, open);
    }
  }

  // The TCP sockets of the process's network namespace. Empty where it may not be entered: then the
  // descriptors have to tell.
  const ByInode& sockets_of_namespace(const Process& process) {
    const ino_t space = namespace_of(process.pid());
    const auto [at, is_new] = spaces_.try_emplace(space);
    if (!is_new) return at->second;
    Result<std::vector<tcp::SocketFacts>> all = fail(ErrorKind::kDenied, "not entered");
    const Result<void> entered = process.in_network_namespace([&all] { all = dump({}); });
    if (!entered || !all) return at->second;
    for (tcp::SocketFacts& one : *all) {
      if (one.inode != 0) at->second.emplace(one.inode, std::move(one));
    }
    return at->second;
  }

  void look_at(const Process& process, const OpenSockets& open) {
    list_.pids.push_back(process.pid());
    list_.vanished += open.vanished;
    refused_ = false;
    const ByInode& known = sockets_of_namespace(process);
    for (const OpenSocket& one : open.sockets) {
      const auto found = known.find(one.inode);
      if (found != known.end()) {
        add_known(process, one, found->second);
      } else {
        add_unknown(process, one);
      }
    }
  }

  // Empty: gone. Not valid: refused. Both are counted.
  std::optional<Descriptor> duplicate(const Process& process, const OpenSocket& one, bool tcp) {
    Result<Descriptor> copy = fail(ErrorKind::kDenied, "refused before");
    if (!refused_) {
      copy = process.duplicate(one.fd);
      if (copy && inode_of(copy->get()) == one.inode) return std::move(*copy);
      // Closed, and perhaps its number used again.
      if (copy || copy.error().kind == ErrorKind::kInvalid) {
        ++list_.vanished;
        return std::nullopt;
      }
      refused_ = copy.error().kind != ErrorKind::kOverloaded;
      if (!list_.why_denied) list_.why_denied = copy.error();
    }
    if (tcp) ++list_.denied;
    return Descriptor();
  }

  void add_known(const Process& process, const OpenSocket& one, tcp::SocketFacts facts) {
    facts.pid = process.pid();
    facts.fd = one.fd;
    if (asked_.options) {
      const std::optional<Descriptor> copy = duplicate(process, one, true);
      if (!copy) return;
      if (copy->valid()) facts.options = read_options(copy->get());
    }
    list_.sockets.push_back(std::move(facts));
  }

  // Of another namespace, bound to nothing, younger than the dump, or no TCP at all.
  void add_unknown(const Process& process, const OpenSocket& one) {
    const SocketKind named = kind_by_name(process.pid(), one.fd);
    if (named == SocketKind::kUnix) {
      ++list_.unix_sockets;
      return;
    }
    const std::optional<Descriptor> copy = duplicate(process, one, named == SocketKind::kTcp);
    if (!copy) return;
    const SocketKind kind = copy->valid() ? kind_of(copy->get()) : named;
    if (kind != SocketKind::kTcp) {
      ++(kind == SocketKind::kUnix ? list_.unix_sockets : list_.other_sockets);
      return;
    }
    tcp::SocketFacts facts;
    if (copy->valid()) {
      facts = facts_of(copy->get());
      if (asked_.options) facts.options = read_options(copy->get());
    }
    facts.pid = process.pid();
    facts.fd = one.fd;
    facts.inode = one.inode;
    list_.sockets.push_back(std::move(facts));
  }

  SocketSearch asked_;
  SocketList list_;
  std::map<ino_t, ByInode> spaces_;
  bool refused_ = false;  // by the process that is looked at: the next one will be refused as well
  std::uint64_t unreadable_ = 0;
};

}  // namespace

Result<SocketList> list_sockets(const SocketSearch& search) {
  if (search.pid) return Search(search).by_pid(*search.pid);
  if (search.port && *search.port != 0) return Search(search).by_port(*search.port);
  return fail(ErrorKind::kInvalid, "neither a process nor a port was named",
              "give --pid P or --port N");
}

}  // namespace tailward::probe
