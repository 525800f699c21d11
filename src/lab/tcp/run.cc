#include "lab/tcp/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "net/real_clock.h"

namespace tailward::lab {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLookEvery = 200ms;  // at the progress and at Ctrl-C

}  // namespace

net::BlockingOptions tcp_options() {
  net::BlockingOptions options;
  // Every kernel has reno. The machine's default may pace (BBR) or leave slow start early (cubic's
  // HyStart): a second cause beside the one that is shown.
  options.congestion = "reno";
  options.timeout = 10s;
  return options;
}

TcpRun::TcpRun(Context& context, std::uint64_t steps)
    : context_(context), steps_(steps), began_(net::real_now()), looked_(began_) {}

Result<std::vector<TcpPlace>> TcpRun::places(const std::vector<Duration>& rtts, bool offload) {
  std::vector<TcpPlace> places;
  for (const Duration rtt : rtts) {
    Result<TcpPlace> place = TcpPlace::make(rtt, context_.seed, offload);
    if (!place && place.error().kind == ErrorKind::kInternal) return fail(place.error());
    if (!place) {
      note(fmt::format("Not measured with RTT {:g} ms: {}. {}", to_ms(rtt), place.error().message,
                       place.error().hint));
      continue;
    }
    if (!place->own()) note("Measured on the machine's own loopback.");
    places.push_back(std::move(*place));
  }
  return places;
}

bool TcpRun::step(std::uint64_t steps) {
  done_ += steps;
  const TimePoint now = net::real_now();
  if (now - looked_ < kLookEvery) return !stopped();
  looked_ = now;
  context_.stopped();
  if (context_.progress) {
    report::Progress progress;
    progress.label = label_;
    progress.done = std::min(done_, steps_);
    progress.total = steps_;
    progress.elapsed = now - began_;
    context_.progress(progress);
  }
  return !stopped();
}

void TcpRun::note(std::string text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) {
    notes_.push_back(std::move(text));
  }
}

Result<std::unique_ptr<TcpWatch>> TcpRun::watch(TcpPlace& place, std::uint16_t port) {
  Result<std::unique_ptr<TcpWatch>> watch = TcpWatch::start(place, port);
  if (watch || watch.error().kind == ErrorKind::kInternal) return watch;
  note(fmt::format("Segments are counted by the kernel (TCP_INFO), not from packets: {}. {}",
                   watch.error().message, watch.error().hint));
  return std::unique_ptr<TcpWatch>();
}

TcpCounts TcpRun::counts(std::unique_ptr<TcpWatch> watch, const net::BlockingSocket& client) {
  if (watch != nullptr) return watch->stop();
  const net::TcpFigures figures = client.figures();
  TcpCounts counts;
  counts.source = CountSource::kTcpInfo;
  counts.segments = figures.data_segments_out;
  counts.retransmissions = figures.retransmissions;
  counts.window_max = figures.send_window;
  counts.in_flight_max = figures.send_window;
  return counts;
}

TcpResult TcpRun::finish(std::vector<TcpArm> arms) {
  TcpResult result;
  std::erase_if(arms, [](const TcpArm& arm) { return arm.latency.count() == 0; });
  result.arms = std::move(arms);
  result.notes = std::move(notes_);
  result.partial = stopped();
  return result;
}

}  // namespace tailward::lab
