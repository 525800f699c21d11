#include "lab/tcp/place.h"

#include <utility>

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;
using End = net::Link::End;

// Everything has arrived when nothing comes for this long: the longest one-way delay is 5 ms.
constexpr Duration kQuiet = 30ms;

}  // namespace

Result<TcpPlace> TcpPlace::make(Duration rtt, std::uint64_t seed, bool offload) {
  TcpPlace place(rtt);
  Result<std::unique_ptr<net::Link>> link =
      net::Link::create({.delay = rtt / 2, .offload = offload}, seed);
  if (link) {
    place.link_ = std::move(*link);
  } else if (rtt > Duration{0}) {
    return fail(link.error());
  }
  return place;
}

Result<void> TcpPlace::run_inside(End end, UniqueFunction<void()> task) {
  if (link_ != nullptr) return link_->run_inside(end, std::move(task));
  task();
  return {};
}

Result<net::BlockingSocket> TcpPlace::listen(const net::BlockingOptions& options) {
  const bool loopback = rtt_ == Duration{0};
  Result<net::BlockingSocket> listener = fail(ErrorKind::kInternal, "");
  const Result<void> entered = run_inside(loopback ? End::kClient : End::kServer, [&] {
    const std::string host = loopback ? "127.0.0.1" : net::Link::address(End::kServer);
    listener = net::BlockingSocket::listen({host, 0}, options);
  });
  if (!entered) return fail(entered.error());
  return listener;
}

Result<TcpPair> TcpPlace::connect(net::BlockingSocket& listener,
                                  const net::BlockingOptions& options) {
  Result<net::BlockingSocket> client = fail(ErrorKind::kInternal, "");
  const Result<void> entered = run_inside(
      End::kClient, [&] { client = net::BlockingSocket::connect(listener.local(), options); });
  if (!entered) return fail(entered.error());
  if (!client) return fail(client.error());
  Result<net::BlockingSocket> server = listener.accept();
  if (!server) return fail(server.error());
  return TcpPair{std::move(*client), std::move(*server)};
}

Result<std::unique_ptr<probe::LiveCapture>> TcpPlace::capture(std::uint16_t port) {
  probe::LiveOptions options;
  options.interface = rtt_ == Duration{0} ? "lo" : net::Link::interface_name();
  options.ports = {port};
  Result<std::unique_ptr<probe::LiveCapture>> capture = fail(ErrorKind::kInternal, "");
  const Result<void> entered =
      run_inside(End::kClient, [&] { capture = probe::LiveCapture::open(options); });
  if (!entered) return fail(entered.error());
  return capture;
}

Result<std::unique_ptr<TcpWatch>> TcpWatch::start(TcpPlace& place, std::uint16_t port) {
  Result<std::unique_ptr<probe::LiveCapture>> capture = place.capture(port);
  if (!capture) return fail(capture.error());
  return std::unique_ptr<TcpWatch>(new TcpWatch(std::move(*capture), TcpTally(port, place.rtt())));
}

TcpWatch::TcpWatch(std::unique_ptr<probe::LiveCapture> capture, TcpTally tally)
    : capture_(std::move(capture)), tally_(std::move(tally)), thread_([this] { run(); }) {}

TcpWatch::~TcpWatch() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void TcpWatch::run() {
  probe::SegmentSink sink = [this](const tcp::Segment& segment) { tally_.add(segment); };
  for (;;) {
    const bool last = stopping_;
    const Result<std::size_t> got = capture_->poll(kQuiet, sink);
    if (!got || (last && *got == 0)) return;
  }
}

TcpCounts TcpWatch::stop() {
  stopping_ = true;
  thread_.join();
  TcpCounts counts = tally_.counts();
  counts.lost = capture_->counters().lost;
  return counts;
}

}  // namespace tailward::lab
