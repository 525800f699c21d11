// On a real interface: as root only.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "probe/capture.h"
#include "probe/sockets.h"

namespace tailward::probe {
namespace {

using namespace std::chrono_literals;
using tcp::Segment;
using ::testing::HasSubstr;

// A connection over loopback that sends "hello" and is closed.
class Conversation {
 public:
  Conversation() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    address_ = address;
  }
  [[nodiscard]] std::uint16_t port() const { return ntohs(address_.sin_port); }
  void hold() {
    Descriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    const Descriptor server(::accept(listener_.get(), nullptr, nullptr));
    ASSERT_EQ(::send(client.get(), "hello", 5, 0), 5);
    char room[8];
    ASSERT_EQ(::recv(server.get(), room, sizeof room, 0), 5);
  }

 private:
  Descriptor listener_;
  sockaddr_in address_{};
};

// Polls until `enough`, for at most two seconds of waiting.
template <class Enough>
std::vector<Segment> collect(LiveCapture& capture, Enough enough) {
  std::vector<Segment> segments;
  SegmentSink sink = [&](const Segment& segment) { segments.push_back(segment); };
  for (int i = 0; i < 20 && !enough(segments); ++i) {
    const auto count = capture.poll(100ms, sink);
    EXPECT_TRUE(count) << count.error().message;
    if (!count) break;
  }
  return segments;
}

bool has_end(const std::vector<Segment>& segments) {
  return std::count_if(segments.begin(), segments.end(), [](const auto& s) { return s.fin; }) >= 2;
}

class LiveCaptureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: CAP_NET_RAW";
  }
};

TEST_F(LiveCaptureTest, SeesAHandshakeAndDataOfItsPortsOnly) {
  Conversation watched;
  Conversation other;
  auto capture = LiveCapture::open({.interface = "lo", .ports = {watched.port(), 1}});
  ASSERT_TRUE(capture) << capture.error().message;
  other.hold();
  watched.hold();
  const auto segments = collect(**capture, has_end);
  ASSERT_GE(segments.size(), 5u);
  EXPECT_TRUE(segments[0].syn && !segments[0].ack_flag);
  EXPECT_TRUE(segments[1].syn && segments[1].ack_flag);
  EXPECT_EQ(to_string(segments[0].to), "127.0.0.1:" + std::to_string(watched.port()));
  EXPECT_TRUE(segments[0].mss && segments[0].window_scale);
  std::uint32_t payload = 0;
  for (const Segment& s : segments) {
    EXPECT_TRUE(s.from.port == watched.port() || s.to.port == watched.port());
    payload += s.payload;
  }
  EXPECT_EQ(payload, 5u);
  EXPECT_EQ((*capture)->counters().tcp, segments.size());
  EXPECT_EQ((*capture)->counters().lost, 0u);
}

TEST_F(LiveCaptureTest, OnAnyInterfaceItSaysWhichOne) {
  Conversation conversation;
  auto capture = LiveCapture::open({.ports = {conversation.port()}});
  ASSERT_TRUE(capture) << capture.error().message;
  conversation.hold();
  const auto segments = collect(**capture, has_end);
  ASSERT_GE(segments.size(), 5u);
  EXPECT_EQ(segments[0].interface, 1u);  // lo
}

TEST_F(LiveCaptureTest, WritesWhatItSawToAFileThatReadsTheSame) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("tailward-live-" + std::to_string(::getpid()) + ".pcap");
  Conversation conversation;
  auto capture = LiveCapture::open(
      {.interface = "lo", .ports = {conversation.port()}, .write_to = path.string()});
  ASSERT_TRUE(capture) << capture.error().message;
  conversation.hold();
  const auto live = collect(**capture, has_end);
  std::vector<Segment> read;  // while the capture is still open: it is flushed
  const auto reading =
      read_capture_file(path, [&](const Segment& segment) { read.push_back(segment); });
  std::filesystem::remove(path);
  ASSERT_TRUE(reading) << reading.error().message;
  EXPECT_FALSE(reading->broken);
  ASSERT_EQ(read.size(), live.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].at, live[i].at);
    EXPECT_EQ(read[i].seq, live[i].seq);
    EXPECT_EQ(read[i].payload, live[i].payload);
  }
}

TEST_F(LiveCaptureTest, WithoutPacketsItReturnsAfterTheWait) {
  auto capture = LiveCapture::open({.interface = "lo", .ports = {1}});
  ASSERT_TRUE(capture);
  SegmentSink sink = [](const Segment&) {};
  EXPECT_EQ((*capture)->poll(1ms, sink).value(), 0u);
  EXPECT_EQ((*capture)->poll(-1ms, sink).value(), 0u);
}

TEST_F(LiveCaptureTest, CapturesInTheNetworkNamespaceOfAnotherProcess) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {  // its namespace has nothing but a loopback that is down
    const char ok = ::unshare(CLONE_NEWNET) == 0 ? 'y' : 'n';
    static_cast<void>(!::write(ready[1], &ok, 1));
    ::pause();
    ::_exit(0);
  }
  char ok = 'n';
  EXPECT_EQ(::read(ready[0], &ok, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  const auto there = LiveCapture::open({.interface = "lo", .pid = child});
  const auto here = LiveCapture::open({.interface = "lo"});
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (ok != 'y') GTEST_SKIP() << "needs CAP_SYS_ADMIN: unshare() is refused";
  ASSERT_FALSE(there);
  EXPECT_THAT(there.error().message, HasSubstr("down"));
  EXPECT_TRUE(here);
}

TEST_F(LiveCaptureTest, SaysWhatIsWrongWithItsOptions) {
  const auto unknown = LiveCapture::open({.interface = "no-such0"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::kInvalid);
  EXPECT_THAT(unknown.error().message, HasSubstr("no-such0"));
  const auto unwritable = LiveCapture::open({.interface = "lo", .write_to = "/no/such/folder/f"});
  ASSERT_FALSE(unwritable);
  EXPECT_THAT(unwritable.error().message, HasSubstr("/no/such/folder/f"));
  const auto nobody = LiveCapture::open({.interface = "lo", .pid = INT32_MAX});
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().kind, ErrorKind::kInvalid);
}

// A child, because a privilege that is given up does not come back.
TEST_F(LiveCaptureTest, NamesTheCapabilityThatIsMissing) {
  EXPECT_EXIT(
      {
        if (::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
        const auto capture = LiveCapture::open({.interface = "lo"});
        if (capture || capture.error().kind != ErrorKind::kDenied) ::_exit(3);
        std::fprintf(stderr, "%s", capture.error().message.c_str());
        ::_exit(0);
      },
      ::testing::ExitedWithCode(0), "CAP_NET_RAW");
}

}  // namespace
}  // namespace tailward::probe
