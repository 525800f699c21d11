#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <thread>

#include "probe/sockets_testing.h"

namespace tailward::probe {
namespace {

bool may_make_namespaces() {
  bool may = false;
  std::thread([&may] { may = ::unshare(CLONE_NEWNET) == 0; }).join();
  return may;
}

TEST(ListSocketsTest, FindsTheSocketsOfThisProcessWithTheirAddressesAndOptions) {
  const Connection connection;
  set(connection.client, IPPROTO_TCP, TCP_NODELAY, 1);
  const Result<SocketList> list = list_sockets({.pid = ::getpid()});
  ASSERT_TRUE(list) << list.error().message;
  const tcp::SocketFacts* client = find(*list, connection.client.get());
  const tcp::SocketFacts* server = find(*list, connection.server.get());
  const tcp::SocketFacts* listener = find(*list, connection.listener.get());
  ASSERT_TRUE(client != nullptr && server != nullptr && listener != nullptr);
  EXPECT_EQ(client->pid, ::getpid());
  EXPECT_EQ(client->uid, ::getuid());
  EXPECT_EQ(client->state, tcp::TcpState::kEstablished);
  EXPECT_EQ(client->local, server->remote);
  EXPECT_EQ(client->remote, server->local);
  EXPECT_EQ(client->remote.port, port_of(connection.listener));
  EXPECT_TRUE(client->remote.address.is_v4() && client->remote.address.is_loopback());
  EXPECT_EQ(client->options.nodelay, true);
  EXPECT_EQ(server->options.nodelay, false);
  EXPECT_EQ(listener->state, tcp::TcpState::kListen);
  EXPECT_EQ(listener->send_queue, 200U);
  EXPECT_EQ(listener->recv_queue, 0U);
  EXPECT_EQ(listener->tcp.unacked, std::nullopt);
  EXPECT_TRUE(client->memory && client->memory->sndbuf > 0);
  EXPECT_EQ(list->denied, 0U);
  EXPECT_EQ(list->pids, std::vector<int>{::getpid()});
}

TEST(ListSocketsTest, CountsWhatWasSentAndWhatWaits) {
  const Connection connection;
  const std::string text(1000, 'x');
  ASSERT_EQ(::write(connection.client.get(), text.data(), text.size()), 1000);
  const Result<SocketList> list = list_sockets({.pid = ::getpid(), .options = false});
  ASSERT_TRUE(list);
  const tcp::SocketFacts* client = find(*list, connection.client.get());
  const tcp::SocketFacts* server = find(*list, connection.server.get());
  ASSERT_TRUE(client != nullptr && server != nullptr);
  EXPECT_EQ(client->tcp.bytes_sent, 1000U);
  EXPECT_EQ(client->tcp.data_segs_out, 1U);
  EXPECT_EQ(server->tcp.bytes_received, 1000U);
  EXPECT_EQ(server->recv_queue, 1000U);
  EXPECT_GT(client->tcp.rtt_us.value_or(0), 0U);
  EXPECT_EQ(client->options.nodelay, std::nullopt) << "options were not asked for";
}

TEST(ListSocketsTest, SeesConnectionsThatWaitToBeAccepted) {
  const Descriptor listener = listen_on_loopback();
  const Descriptor first = connect_to(port_of(listener));
  const Descriptor second = connect_to(port_of(listener));
  const Result<SocketList> list = list_sockets({.pid = ::getpid()});
  ASSERT_TRUE(list);
  const tcp::SocketFacts* facts = find(*list, listener.get());
  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(facts->recv_queue, 2U);
  const Result<std::vector<tcp::SocketFacts>> listeners = dump_listeners();
  ASSERT_TRUE(listeners);
  EXPECT_TRUE(std::all_of(listeners->begin(), listeners->end(),
                          [](const auto& one) { return one.state == tcp::TcpState::kListen; }));
  EXPECT_TRUE(std::any_of(listeners->begin(), listeners->end(), [&](const auto& one) {
    return one.inode == facts->inode && one.recv_queue == 2;
  }));
}

TEST(ListSocketsTest, AnIpv4CallerOfADualStackListenerHasAnIpv4Address) {
  const Descriptor listener = listen_on_loopback(AF_INET6);
  const Descriptor four = connect_to(port_of(listener), AF_INET);
  const Descriptor accepted_four = accept_from(listener);
  const Descriptor six = connect_to(port_of(listener), AF_INET6);
  const Descriptor accepted_six = accept_from(listener);
  const Result<SocketList> list = list_sockets({.pid = ::getpid()});
  ASSERT_TRUE(list);
  const tcp::SocketFacts* server = find(*list, accepted_four.get());
  const tcp::SocketFacts* client = find(*list, four.get());
  ASSERT_TRUE(server != nullptr && client != nullptr);
  EXPECT_TRUE(server->local.address.is_v4());
  EXPECT_EQ(server->local, client->remote);
  EXPECT_EQ(server->remote, client->local);
  EXPECT_FALSE(find(*list, six.get())->remote.address.is_v4());
  EXPECT_EQ(find(*list, accepted_six.get())->local, find(*list, six.get())->remote);
}

TEST(ListSocketsTest, CountsOtherSocketsAndListsOnesThatAreBoundToNothing) {
  const Result<SocketList> before = list_sockets({.pid = ::getpid()});
  const Descriptor fresh(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Descriptor udp(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  int pair[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const Descriptor one(pair[0]);
  const Descriptor two(pair[1]);
  const Result<SocketList> after = list_sockets({.pid = ::getpid()});
  ASSERT_TRUE(before && after);
  EXPECT_EQ(after->unix_sockets, before->unix_sockets + 2);
  EXPECT_EQ(after->other_sockets, before->other_sockets + 1);
  const tcp::SocketFacts* facts = find(*after, fresh.get());
  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(facts->state, tcp::TcpState::kClose);
  EXPECT_EQ(facts->options.nodelay, false);
}

TEST(ListSocketsTest, FindsTheProcessesThatHaveAPort) {
  const Descriptor listener = listen_on_loopback();
  const std::uint16_t port = port_of(listener);
  const Child child([] {});  // has a copy of the descriptor
  const Result<SocketList> list = list_sockets({.port = port});
  ASSERT_TRUE(list) << list.error().message;
  std::vector<int> pids{::getpid(), child.pid()};
  std::sort(pids.begin(), pids.end());
  EXPECT_EQ(list->pids, pids);
  EXPECT_EQ(std::count_if(list->sockets.begin(), list->sockets.end(),
                          [&](const auto& one) { return one.local.port == port; }),
            2);
}

TEST(ListSocketsTest, ReadsAnotherProcess) {
  const Connection connection;
  const Child child([&] { set(connection.server, IPPROTO_TCP, TCP_CORK, 1); });
  const Result<SocketList> list = list_sockets({.pid = child.pid()});
  ASSERT_TRUE(list) << list.error().message;
  if (list->denied > 0) GTEST_SKIP() << list->why_denied->message;
  const tcp::SocketFacts* facts = find(*list, connection.server.get());
  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(facts->pid, child.pid());
  EXPECT_EQ(facts->options.cork, true);
}

TEST(ListSocketsTest, ByProcessAndPortGivesThatPortOnly) {
  const Connection connection;
  const Result<SocketList> list =
      list_sockets({.pid = ::getpid(), .port = port_of(connection.listener)});
  ASSERT_TRUE(list);
  EXPECT_EQ(find(*list, connection.client.get()), nullptr);
  EXPECT_NE(find(*list, connection.server.get()), nullptr);
  EXPECT_NE(find(*list, connection.listener.get()), nullptr);
}

TEST(ListSocketsTest, ReadsSocketsOfAnotherNetworkNamespace) {
  if (!may_make_namespaces()) GTEST_SKIP() << "needs CAP_SYS_ADMIN";
  auto* numbers = static_cast<int*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(numbers, MAP_FAILED);
  const Child child([numbers] {
    if (::unshare(CLONE_NEWNET) != 0) ::_exit(1);
    Descriptor listener(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(45'678);
    static_cast<void>(::bind(listener.get(), reinterpret_cast<sockaddr*>(&any), sizeof any));
    ::listen(listener.get(), 77);
    numbers[0] = listener.release();
  });
  const Result<SocketList> list = list_sockets({.pid = child.pid()});
  ASSERT_TRUE(list) << list.error().message;
  const tcp::SocketFacts* facts = find(*list, numbers[0]);
  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(facts->state, tcp::TcpState::kListen);
  EXPECT_EQ(facts->local.port, 45'678);
  EXPECT_EQ(facts->send_queue, 77U);
  const Result<SocketList> by_port = list_sockets({.port = 45'678});
  ASSERT_TRUE(by_port) << by_port.error().message;
  EXPECT_EQ(by_port->pids, std::vector<int>{child.pid()});
  ::munmap(numbers, 4096);
}

TEST(ListSocketsTest, AThreadsSocketsOfAnotherNamespaceAreReadThroughTheirDescriptors) {
  if (!may_make_namespaces()) GTEST_SKIP() << "needs CAP_SYS_ADMIN";
  Descriptor foreign;
  std::thread([&foreign] {
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
    foreign = listen_on_loopback(AF_INET6, 33);
  }).join();
  const Result<SocketList> list = list_sockets({.pid = ::getpid()});
  ASSERT_TRUE(list);
  const tcp::SocketFacts* facts = find(*list, foreign.get());
  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(facts->state, tcp::TcpState::kListen);
  EXPECT_EQ(facts->local.port, port_of(foreign));
  EXPECT_EQ(facts->send_queue, 33U);
  EXPECT_EQ(facts->options.v6only, false);
}

TEST(ListSocketsTest, SaysWhyThereIsNothing) {
  const Result<SocketList> none = list_sockets({.pid = 0x7fff'fff0});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(none.error().message, "there is no process 2147483632");

  std::uint16_t port = 0;
  {
    const Descriptor listener = listen_on_loopback();
    port = port_of(listener);
  }
  const Result<SocketList> nobody = list_sockets({.port = port});
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().kind, ErrorKind::kInvalid);
  EXPECT_NE(nobody.error().message.find("nothing uses TCP port"), std::string::npos);

  Child child([] {});
  child.kill_only();
  const Result<SocketList> zombie = list_sockets({.pid = child.pid()});
  ASSERT_FALSE(zombie);
  EXPECT_NE(zombie.error().message.find("has ended"), std::string::npos);
}

TEST(ListSocketsTest, SaysThatAPortIsAUdpPort) {
  const Descriptor udp(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  ASSERT_EQ(::bind(udp.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
  const std::uint16_t port = port_of(udp);
  const Result<SocketList> list = list_sockets({.port = port});
  if (list) GTEST_SKIP() << "something has the TCP port of the same number";
  EXPECT_NE(list.error().message.find("is a UDP port"), std::string::npos) << list.error().message;
}

TEST(ListSocketsTest, NamesTheProcessOfAThread) {
  std::thread([] {
    const int tid = static_cast<int>(::syscall(SYS_gettid));
    const Result<SocketList> list = list_sockets({.pid = tid});
    ASSERT_FALSE(list);
    EXPECT_NE(list.error().message.find("is a thread of process"), std::string::npos)
        << list.error().message;
  }).join();
}

TEST(ListSocketsTest, AnotherUsersProcessIsRefusedWithTheWayOut) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  const Descriptor listener = listen_on_loopback();
  const std::uint16_t port = port_of(listener);
  const int parent = ::getpid();
  int pipe[2] = {-1, -1};
  ASSERT_EQ(::pipe(pipe), 0);
  const Child child([&] {
    ::close(pipe[0]);
    ::close(listener.get());
    constexpr uid_t kNobody = 65534;
    if (::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(1);
    const Result<SocketList> list = list_sockets({.pid = parent});
    const Result<SocketList> by_port = list_sockets({.port = port});
    std::string text = list ? "no error" : list.error().message + "|" + list.error().hint;
    text += by_port ? "|" + by_port->why_denied.value_or(Error{}).message : "|no list";
    static_cast<void>(!::write(pipe[1], text.data(), text.size()));
  });
  ::close(pipe[1]);
  char said[1024] = {};
  ASSERT_GT(::read(pipe[0], said, sizeof said - 1), 0);
  ::close(pipe[0]);
  const std::string text = said;
  EXPECT_NE(text.find("runs as uid 0, this as uid 65534"), std::string::npos) << text;
  EXPECT_NE(text.find("CAP_SYS_PTRACE"), std::string::npos) << text;
  EXPECT_NE(text.find("belongs to a process of uid 0"), std::string::npos) << text;
}

TEST(ProcessTest, ADuplicateIsTheSameSocket) {
  const Connection connection;
  const Result<Process> self = Process::open(::getpid());
  ASSERT_TRUE(self);
  EXPECT_TRUE(self->running());
  const Result<Descriptor> copy = self->duplicate(connection.client.get());
  ASSERT_TRUE(copy) << copy.error().message;
  set(*copy, IPPROTO_TCP, TCP_NODELAY, 1);
  EXPECT_EQ(read_options(connection.client.get()).nodelay, true);
  const Result<Descriptor> none = self->duplicate(123'456);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kInvalid);
}

TEST(ProcessTest, NoticesItsEnd) {
  Child child([] {});
  const Result<Process> process = Process::open(child.pid());
  ASSERT_TRUE(process);
  EXPECT_TRUE(process->running());
  child.end();
  EXPECT_FALSE(process->running());
  const Result<Descriptor> copy = process->duplicate(0);
  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().kind, ErrorKind::kInvalid);
}

TEST(ProcessTest, RunsInItsOwnNamespaceAtOnceAndInTheCallersThread) {
  const Result<Process> self = Process::open(::getpid());
  ASSERT_TRUE(self);
  std::thread::id where;
  ASSERT_TRUE(self->in_network_namespace([&where] { where = std::this_thread::get_id(); }));
  EXPECT_EQ(where, std::this_thread::get_id());
}

}  // namespace
}  // namespace tailward::probe
