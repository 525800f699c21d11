#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/units.h"
#include "diag/packet_analyser.h"
#include "diagnose/diagnosis.h"
#include "probe/sockets.h"

namespace tailward::diagnose {
namespace {

constexpr Duration kLookEvery = std::chrono::milliseconds(50);    // at the listeners
constexpr Duration kListEvery = std::chrono::milliseconds(1000);  // the process's sockets
constexpr std::size_t kSocketsMax = 20'000;  // remembered; a service opens more in a day
constexpr std::size_t kPortsMax = 64;        // of a kernel filter

using SocketKey = std::pair<tcp::SocketAddress, tcp::SocketAddress>;

// One run of `diagnose --pid` or `--port`.
class Watch {
 public:
  Watch(const LiveOptions& options, const Hooks& hooks) : options_(options), hooks_(hooks) {}

  Result<Diagnosis> run() {
    if (Result<void> found = find_target(); !found) return fail(found.error());
    if (Result<void> opened = open_capture(); !opened) return fail(opened.error());
    counters(&before_);
    const Duration watched = follow();
    finish(watched);
    return std::move(diagnosis_);
  }

 private:
  Result<void> find_target() {
    Result<probe::SocketList> list = probe::list_sockets({options_.pid, options_.port});
    if (!list) return fail(list.error());
    const std::optional<int> pid = options_.pid         ? options_.pid
                                   : list->pids.empty() ? std::nullopt
                                                        : std::optional(list->pids.front());
    if (pid) {
      Result<probe::Process> process = probe::Process::open(*pid);
      if (!process) return fail(process.error());
      process_.emplace(std::move(*process));
    }
    remember(list->sockets, earlier_);
    remember(list->sockets, latest_);
    options_denied_ = list->denied;
    choose_ports(list->sockets);
    if (ports_.empty()) {
      return fail(ErrorKind::kInvalid,
                  fmt::format("process {} has no TCP socket", options_.pid.value_or(0)),
                  "see `tailward sockets --pid`; a service may have its workers do the talking");
    }
    return {};
  }

  // A server is judged by the requests that it serves; what it asks of others is another question.
  void choose_ports(const std::vector<tcp::SocketFacts>& sockets) {
    std::set<std::uint16_t> listening;
    std::map<std::uint16_t, std::uint64_t> outbound;
    for (const tcp::SocketFacts& socket : sockets) {
      if (socket.state == tcp::TcpState::kListen) listening.insert(socket.local.port);
    }
    listens_ = options_.port ? listening.contains(*options_.port) : !listening.empty();
    for (const tcp::SocketFacts& socket : sockets) {
      if (socket.state != tcp::TcpState::kListen && socket.remote.port != 0 &&
          !listening.contains(socket.local.port)) {
        ++outbound[socket.remote.port];
      }
    }
    if (options_.port) {
      ports_ = {*options_.port};
    } else if (!listening.empty()) {
      ports_.assign(listening.begin(), listening.end());
      for (const auto& [port, count] : outbound) {
        diagnosis_.warnings.push_back(
            fmt::format("its own connections to port {} ({}) were not looked at: --port {}", port,
                        format_count(count), port));
      }
    } else {
      for (const auto& [port, count] : outbound) ports_.push_back(port);
    }
    if (ports_.size() > kPortsMax) {
      diagnosis_.warnings.push_back(fmt::format("{} of its {} ports were looked at",
                                                format_count(kPortsMax),
                                                format_count(ports_.size())));
      ports_.resize(kPortsMax);
    }
  }

  // Without the right to capture there are still the sockets; anything else is a mistake to mend.
  Result<void> open_capture() {
    Result<std::unique_ptr<probe::LiveCapture>> capture =
        probe::LiveCapture::open({.interface = options_.interface,
                                  .ports = ports_,
                                  .pid = process_ ? process_->pid() : 0,
                                  .write_to = options_.write_to});
    if (capture) {
      capture_ = std::move(*capture);
      diagnosis_.sources.push_back({"packets", "used"});
      return {};
    }
    const Error& error = capture.error();
    if (error.kind != ErrorKind::kDenied && error.kind != ErrorKind::kUnsupported) {
      return fail(error);
    }
    diagnosis_.sources.push_back({"packets",
                                  error.kind == ErrorKind::kDenied ? "denied" : "not there",
                                  error.message + (error.hint.empty() ? "" : "; " + error.hint)});
    return {};
  }

  // Whatever asks the kernel about a network namespace must do so inside it.
  Result<void> inside(UniqueFunction<void()> task) {
    if (process_) return process_->in_network_namespace(std::move(task));
    task();
    return {};
  }

  void counters(std::optional<tcp::HostCounters>* into) {
    static_cast<void>(inside([&] {
      Result<tcp::HostCounters> read = probe::read_counters();
      if (read) *into = *read;
    }));
  }

  [[nodiscard]] bool ours(std::uint16_t port) const {
    return std::find(ports_.begin(), ports_.end(), port) != ports_.end();
  }

  void look_at_listeners() {
    static_cast<void>(inside([&] {
      Result<std::vector<tcp::SocketFacts>> all = probe::dump_listeners();
      if (!all) return;
      // Of sockets that share an address (SO_REUSEPORT), the one with the longest queue.
      std::map<tcp::SocketAddress, const tcp::SocketFacts*> longest;
      for (const tcp::SocketFacts& socket : *all) {
        if (socket.state != tcp::TcpState::kListen || !ours(socket.local.port)) continue;
        const auto [known, first] = longest.try_emplace(socket.local, &socket);
        if (!first && socket.recv_queue > known->second->recv_queue) known->second = &socket;
      }
      for (const auto& [local, socket] : longest) {
        auto& watch = listeners_[local];
        watch.local = local;
        watch.backlog = socket->send_queue;
        watch.queue_max = std::max(watch.queue_max, socket->recv_queue);
        ++watch.looks;
        watch.looks_waiting += socket->recv_queue > 0 ? 1 : 0;
        watch.looks_full += socket->recv_queue >= socket->send_queue && socket->recv_queue > 0;
      }
    }));
  }

  void remember(const std::vector<tcp::SocketFacts>& sockets,
                std::map<SocketKey, tcp::SocketFacts>& into) {
    for (const tcp::SocketFacts& socket : sockets) {
      const SocketKey key{socket.local, socket.remote};
      const auto known = into.find(key);
      if (known == into.end() && into.size() >= kSocketsMax) continue;
      // A cork is set and cleared with every message: seen once, it is what explains a wait.
      const bool was_corked = known != into.end() && known->second.options.cork.value_or(false);
      tcp::SocketFacts& kept = into[key] = socket;
      if (was_corked) kept.options.cork = true;
    }
  }

  void list_again() {
    Result<probe::SocketList> list = probe::list_sockets({options_.pid, options_.port});
    if (!list) return;  // a process that ends is no reason to lose what was seen
    options_denied_ = std::max(options_denied_, list->denied);
    remember(list->sockets, latest_);
    for (const tcp::SocketFacts& socket : list->sockets) {
      earlier_.try_emplace({socket.local, socket.remote}, socket);
    }
  }

  Duration follow() {
    const TimePoint began = hooks_.now();
    const TimePoint end = began + options_.watch;
    TimePoint next_look = began;
    TimePoint next_list = began + kListEvery;
    probe::SegmentSink sink = [this](const tcp::Segment& segment) { analyser_->add(segment); };
    analyser_ = std::make_unique<diag::PacketAnalyser>(ports_);
    if (listens_) analyser_->captured_at_server();
    tell_scales();
    TimePoint now = began;
    while (now < end) {
      if (hooks_.stop_asked && hooks_.stop_asked()) {
        diagnosis_.partial = true;
        break;
      }
      if (process_ && !process_->running()) {
        diagnosis_.warnings.push_back(fmt::format("process {} ended meanwhile", process_->pid()));
        diagnosis_.partial = true;
        break;
      }
      if (now >= next_look) {
        look_at_listeners();
        next_look = now + kLookEvery;
      }
      if (now >= next_list) {
        list_again();
        next_list = now + kListEvery;
      }
      wait(std::min({next_look, next_list, end}) - now, sink);
      now = hooks_.now();
      if (hooks_.progress) {
        hooks_.progress({"watching, ms", static_cast<std::uint64_t>(to_ms(now - began)),
                         static_cast<std::uint64_t>(to_ms(options_.watch)), now - began});
      }
    }
    list_again();
    return now - began;
  }

  void wait(Duration at_most, probe::SegmentSink& sink) {
    if (!capture_) {
      hooks_.wait(at_most);
      return;
    }
    Result<std::size_t> polled = capture_->poll(std::max(at_most, Duration{0}), sink);
    if (polled) return;
    diagnosis_.warnings.push_back(polled.error().message);
    diagnosis_.partial = true;
    counters_of_capture_ = capture_->counters();
    capture_.reset();
  }

  // Of connections whose SYNs came before we did.
  void tell_scales() {
    for (const auto& [key, socket] : latest_) {
      const auto &ours = socket.tcp.rcv_wscale, &theirs = socket.tcp.snd_wscale;
      if (ours && theirs) analyser_->know_scales(socket.local, *ours, socket.remote, *theirs);
    }
  }

  void name_sources() {
    std::vector<Source>& sources = diagnosis_.sources;
    if (Source* packets = sources.empty() ? nullptr : &sources.front();
        packets != nullptr && packets->state == "used") {
      packets->note = fmt::format("{} TCP segments", format_count(diagnosis_.packets.packets));
    }
    sources.push_back({"sockets", "used", fmt::format("{} sockets", format_count(latest_.size()))});
    const bool all_denied = options_denied_ > 0 && options_denied_ >= latest_.size();
    sources.push_back(
        {"options", all_denied ? "denied" : "used",
         options_denied_ == 0
             ? ""
             : fmt::format("of {} sockets not readable: run as their user, or as root",
                           format_count(options_denied_))});
    sources.push_back({"counters", diagnosis_.counters ? "used" : "not there"});
    sources.push_back({"bpf", "not asked for"});
  }

  void finish(Duration watched) {
    diagnosis_.packets = analyser_->finish();
    if (capture_) counters_of_capture_ = capture_->counters();
    diagnosis_.capture = counters_of_capture_;
    diagnosis_.ports = ports_;
    diagnosis_.window = watched;
    std::optional<tcp::HostCounters> after;
    counters(&after);
    if (before_ && after) diagnosis_.counters = tcp::difference(*after, *before_);
    for (const auto& [key, socket] : latest_) diagnosis_.sockets.push_back(socket);
    for (const auto& [local, watch] : listeners_) diagnosis_.listeners.push_back(watch);
    std::vector<tcp::SocketFacts> earlier;
    for (const auto& [key, socket] : earlier_) earlier.push_back(socket);
    name_sources();
    diagnosis_.network = diag::diagnose_network({.packets = &diagnosis_.packets,
                                                 .sockets = diagnosis_.sockets,
                                                 .earlier = earlier,
                                                 .listeners = diagnosis_.listeners,
                                                 .counters = diagnosis_.counters,
                                                 .packets_lost = diagnosis_.capture.lost});
  }

  const LiveOptions& options_;
  const Hooks& hooks_;
  Diagnosis diagnosis_;
  std::optional<probe::Process> process_;
  std::vector<std::uint16_t> ports_;
  std::unique_ptr<probe::LiveCapture> capture_;
  std::unique_ptr<diag::PacketAnalyser> analyser_;
  probe::CaptureCounters counters_of_capture_;
  std::map<SocketKey, tcp::SocketFacts> earlier_;
  std::map<SocketKey, tcp::SocketFacts> latest_;
  std::map<tcp::SocketAddress, diag::NetworkEvidence::ListenerWatch> listeners_;
  std::optional<tcp::HostCounters> before_;
  bool listens_ = false;  // on the ports that are looked at: the requests are served here
  std::uint64_t options_denied_ = 0;
};

}  // namespace

Result<Diagnosis> diagnose_live(const LiveOptions& options, const Hooks& hooks) {
  return Watch(options, hooks).run();
}

}  // namespace tailward::diagnose
