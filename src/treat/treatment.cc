#include "treat/treatment.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/units.h"
#include "base/wall_clock.h"

namespace tailward::treat {
namespace {

// How long one wait for packets or for the user is: Ctrl-C is seen within it.
constexpr Duration kTick = std::chrono::milliseconds(50);
// How often new connections, the end of the process and a lost guardian are looked for, and the
// progress line is written. Each look dumps all sockets.
constexpr Duration kLookEvery = std::chrono::seconds(1);
// Before the change both halves are watched for a fifth of the time, within these bounds. It only
// has to show whether they were alike, not to measure an effect.
constexpr Duration kBaselineMin = std::chrono::seconds(1);
constexpr Duration kBaselineMax = std::chrono::seconds(10);
// A slice must be much longer than the slowest normal request, because requests over its boundary
// are left out, and short against changes of load. 20 slices are 10 pairs.
constexpr Duration kSliceMin = std::chrono::milliseconds(500);
constexpr Duration kSliceMax = std::chrono::seconds(5);
constexpr int kSlicesWanted = 20;
// With more, the filter of the capture is longer than what it saves.
constexpr std::size_t kPortsMax = 32;
// For the packets that the kernel still has when the watch ends.
constexpr int kLastLooks = 3;

std::string count_of(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", format_count(count), what, count == 1 ? "" : "s");
}

std::string capability_hint() {
  return "run it as root or as the process's user (and kernel.yama.ptrace_scope=0), or with "
         "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";
}

// A process that cannot be opened for any other reason has ended.
StepOutcome outcome_of(const Error& error) {
  return error.kind == ErrorKind::kDenied ? StepOutcome::kDenied : StepOutcome::kClosed;
}

// A change that ends with the guardian cannot be kept.
Result<void> keepable(const TreatmentOptions& options) {
  for (const Setting& one : options.settings) {
    if (!options.keep || !is_non_sticky(one.option)) continue;
    return fail(ErrorKind::kInvalid, fmt::format("{} cannot be kept", info(one.option).name),
                "the kernel takes it back by itself, and nobody sets it again after the treatment: "
                "leave out --keep, and let the application set it after each read");
  }
  return {};
}

bool already_so(const StepResult& noted, const std::vector<Setting>& settings) {
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (!satisfies(noted.before[i], settings[i])) return false;
  }
  return true;
}

}  // namespace

std::string_view to_string(Design design) {
  switch (design) {
    case Design::kHalves:
      return "halves";
    case Design::kSlices:
      return "slices";
    case Design::kAll:
      return "before-after";
  }
  return "";
}

Result<std::unique_ptr<Treatment>> Treatment::prepare(const TreatmentOptions& options) {
  if (const Result<void> fine = keepable(options); !fine) return fail(fine.error());
  std::unique_ptr<Treatment> treatment(new Treatment(options));
  std::vector<tcp::SocketFacts> found;
  if (const Result<void> done = treatment->find(found); !done) return fail(done.error());
  Result<std::unique_ptr<Guardian>> guardian =
      Guardian::start(treatment->processes_, options.settings);
  if (!guardian) return fail(guardian.error());
  treatment->guardian_ = std::move(*guardian);
  if (const Result<void> done = treatment->note_all(found); !done) return fail(done.error());
  treatment->draw();
  return treatment;
}

Result<void> Treatment::find(std::vector<tcp::SocketFacts>& found) {
  const Result<probe::SocketList> list =
      probe::list_sockets({.pid = options_.pid, .port = options_.port, .options = false});
  if (!list) return fail(list.error());
  std::set<std::uint32_t> seen;
  std::size_t established = 0;
  std::size_t nobodys = 0;
  for (const tcp::SocketFacts& one : list->sockets) {
    // A connection that is being closed has no latency to improve.
    if (one.state != tcp::TcpState::kEstablished) continue;
    if (!seen.insert(one.inode).second) continue;  // shared by processes that were forked
    ++established;
    if (options_.remote && !options_.remote->matches(one.remote)) continue;
    // Without a descriptor we may not look into its process: nothing to duplicate.
    one.fd < 0 ? static_cast<void>(++nobodys) : found.push_back(one);
  }
  const std::string whose = options_.pid ? fmt::format("process {}", *options_.pid)
                                         : fmt::format("port {}", options_.port.value_or(0));
  if (found.empty() && nobodys > 0) {
    return fail(ErrorKind::kDenied,
                fmt::format("{} of {} belong to a process that may not be looked into",
                            count_of(nobodys, "connection"), whose),
                capability_hint());
  }
  if (found.empty()) {
    return fail(ErrorKind::kInvalid,
                established == 0 ? fmt::format("{} has no established TCP connection", whose)
                                 : fmt::format("none of the {} of {} matches --remote",
                                               count_of(established, "connection"), whose),
                "tailward sockets shows what there is");
  }
  std::set<int> pids;
  for (const tcp::SocketFacts& one : found) pids.insert(one.pid);
  for (const int pid : pids) {
    Result<probe::Process> process = probe::Process::open(pid);
    if (process) processes_.push_back(std::move(*process));
    // One of several processes may have ended since; the only one is an error.
    else if (pids.size() == 1)
      return fail(process.error());
  }
  if (processes_.empty()) return fail(ErrorKind::kInvalid, whose + " has ended");
  choose_ports(list->sockets);
  return {};
}

// The ports by which the kernel is to filter: of each connection the server's, so that new
// connections are seen, too.
void Treatment::choose_ports(const std::vector<tcp::SocketFacts>& all) {
  std::vector<tcp::SocketFacts> sockets;
  for (const tcp::SocketFacts& one : all) {
    const bool meant = one.state == tcp::TcpState::kEstablished &&
                       (!options_.remote || options_.remote->matches(one.remote));
    if (meant || one.state == tcp::TcpState::kListen) sockets.push_back(one);
  }
  // A worker's connections may have been accepted by another process, which has the listener.
  const auto look = [&sockets] {
    const Result<std::vector<tcp::SocketFacts>> listeners = probe::dump_listeners();
    if (listeners) sockets.insert(sockets.end(), listeners->begin(), listeners->end());
  };
  static_cast<void>(processes_[0].in_network_namespace(look));
  const std::set<std::uint16_t> chosen = server_ports(sockets);
  // No ports: everything is captured and the analyser sorts it out.
  if (chosen.size() <= kPortsMax) ports_.assign(chosen.begin(), chosen.end());
  diag::PacketLimits limits;
  // Every connection that is treated can be told apart in the capture.
  limits.connections_kept = UndoLog::kConnectionsMax;
  analyser_ = std::make_unique<diag::PacketAnalyser>(ports_, limits);
}

MatchedConnection& Treatment::note(const tcp::SocketFacts& facts) {
  MatchedConnection& made = connections_.emplace_back();
  made.pid = facts.pid;
  made.local = facts.local;
  made.remote = facts.remote;
  made.activity = facts.tcp.bytes_received.value_or(0) + facts.tcp.bytes_sent.value_or(0);
  const auto process =
      std::find_if(processes_.begin(), processes_.end(),
                   [&](const probe::Process& one) { return one.pid() == facts.pid; });
  made.target = {static_cast<std::uint32_t>(process - processes_.begin()), facts.fd, facts.inode,
                 facts.local.port};
  if (process == processes_.end()) {
    // The guardian knows only the processes that there were when it was forked.
    const Result<probe::Process> owner = probe::Process::open(facts.pid);
    made.outcome = owner ? StepOutcome::kFailed : outcome_of(owner.error());
    made.reason = owner ? "its process was started during the treatment" : owner.error().message;
    return made;
  }
  const StepResult noted = guardian_->track(made.target);
  made.outcome = noted.outcome;
  made.reason = noted.text();
  if (noted.outcome != StepOutcome::kDone) return made;
  made.id = noted.id;
  made.noted = true;
  made.before = made.after = noted.before;
  // A connection that has the wanted value by itself is no control either: it is left out.
  made.treatable = !already_so(noted, options_.settings);
  if (!made.treatable) made.outcome = StepOutcome::kAlready;
  return made;
}

Result<void> Treatment::note_all(const std::vector<tcp::SocketFacts>& found) {
  std::size_t treatable = 0;
  std::size_t already = 0;
  for (const tcp::SocketFacts& one : found) {
    const MatchedConnection& made = note(one);
    treatable += made.treatable ? 1 : 0;
    already += made.outcome == StepOutcome::kAlready ? 1 : 0;
  }
  if (treatable > 0) return {};
  if (already == connections_.size()) {
    return fail(
        ErrorKind::kInvalid,
        fmt::format("nothing to treat: {} already {} {}", count_of(already, "matching connection"),
                    already == 1 ? "has" : "have", to_string(options_.settings)));
  }
  // The enumerators are ordered from harmless to worst.
  const auto worst = std::max_element(
      connections_.begin(), connections_.end(),
      [](const MatchedConnection& a, const MatchedConnection& b) { return a.outcome < b.outcome; });
  const std::string why =
      worst->reason.empty() ? std::string(to_string(worst->outcome)) : worst->reason;
  if (worst->outcome == StepOutcome::kDenied) {
    return fail(ErrorKind::kDenied, "no connection may be treated: " + why);
  }
  return fail(ErrorKind::kInvalid, "no connection can be treated: " + why);
}

void Treatment::draw() {
  std::vector<Candidate> candidates;
  std::vector<std::size_t> index;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    if (!connections_[i].treatable) continue;
    candidates.push_back({connections_[i].remote, connections_[i].activity});
    index.push_back(i);
  }
  // The design follows from how many connections there are; only --all is chosen by the user.
  design_ = options_.all                     ? Design::kAll
            : candidates.size() < kHalvesMin ? Design::kSlices
                                             : Design::kHalves;
  const std::vector<bool> drawn = design_ == Design::kHalves
                                      ? draw_half(candidates, rng_)
                                      : std::vector<bool>(candidates.size(), true);
  for (std::size_t i = 0; i < index.size(); ++i) connections_[index[i]].treated = drawn[i];
}

std::string Treatment::process_name() const {
  return processes_.empty() ? std::string() : processes_[0].name();
}

Duration Treatment::baseline_length() const {
  if (design_ == Design::kSlices) return Duration{0};
  // Before and after are compared: they should be of one length.
  if (design_ == Design::kAll) return options_.length;
  return std::clamp<Duration>(options_.length / 5, kBaselineMin, kBaselineMax);
}

std::size_t Treatment::slice_count() const {
  if (design_ != Design::kSlices) return 0;
  const Duration each = std::clamp<Duration>(options_.length / kSlicesWanted, kSliceMin, kSliceMax);
  // Pairs of slices, and two pairs at least: one pair is no comparison.
  return std::max<std::size_t>(2, static_cast<std::size_t>(options_.length / each / 2)) * 2;
}

void Treatment::open_capture() {
  Result<std::unique_ptr<probe::LiveCapture>> capture =
      probe::LiveCapture::open({.ports = ports_, .pid = processes_[0].pid()});
  if (capture)
    capture_ = std::move(*capture);
  else
    result_.no_capture = capture.error();
}

bool Treatment::take_packets(Duration wait) {
  probe::SegmentSink sink = [this](const tcp::Segment& segment) { analyser_->add(segment); };
  const Result<std::size_t> got = capture_->poll(wait, sink);
  if (!got) result_.no_capture = got.error();
  return static_cast<bool>(got);
}

void Treatment::take_snapshot() {
  // The kernel's own account is needed only where packets could not be captured.
  if (capture_ != nullptr) return;
  std::vector<BusyTime>& into = snapshots_.emplace_back();
  const auto look = [&into] {
    const Result<std::vector<tcp::SocketFacts>> sockets = probe::dump_sockets();
    if (!sockets) return;
    for (const tcp::SocketFacts& one : *sockets) {
      into.push_back({one.inode, one.tcp.busy_us.value_or(0), one.tcp.data_segs_out.value_or(0)});
    }
  };
  static_cast<void>(processes_[0].in_network_namespace(look));
}

// False: the measurement is to end.
bool Treatment::phase(const RunHooks& hooks, const Stretch& stretch) {
  const TimePoint began = hooks.now();
  while (true) {
    const TimePoint now = hooks.now();
    const Duration left = stretch.length - (now - began);
    if (left <= Duration{0}) return true;
    const Duration wait = std::min(left, kTick);
    bool going = true;
    if (capture_ != nullptr) going = take_packets(wait);
    // Reading packets has waited already.
    if (hooks.wait(capture_ != nullptr ? Duration{0} : wait) || !going) {
      result_.partial = true;
      return false;
    }
    if (now - looked_ < kLookEvery) continue;
    looked_ = now;
    hooks.progress(stretch.name, stretch.before + (now - began), stretch.total);
    if (!guardian_->ping()) return false;
    result_.process_ended = std::none_of(processes_.begin(), processes_.end(),
                                         [](const auto& one) { return one.running(); });
    if (result_.process_ended) {
      result_.partial = true;
      return false;
    }
    if (stretch.new_ones) look_for_new();
  }
}

void Treatment::look_for_new() {
  const Result<probe::SocketList> list =
      probe::list_sockets({.pid = options_.pid, .port = options_.port, .options = false});
  if (!list) return;
  std::set<std::uint32_t> known;
  for (const MatchedConnection& one : connections_) known.insert(one.target.inode);
  for (const tcp::SocketFacts& one : list->sockets) {
    if (one.state != tcp::TcpState::kEstablished || one.fd < 0) continue;
    if (options_.remote && !options_.remote->matches(one.remote)) continue;
    if (!known.insert(one.inode).second || connections_.size() >= UndoLog::kConnectionsMax)
      continue;
    MatchedConnection& made = note(one);
    made.late = true;
    if (!made.treatable) continue;
    // A coin each: pairing needs several at a time, and later connections may come one by one.
    made.treated = design_ != Design::kHalves || rng_.chance(0.5);
    // What it did before it was noted is in neither half.
    made.since = wall_clock_now();
    if (made.treated && applied_) apply(made);
  }
}

void Treatment::apply(MatchedConnection& connection) {
  const StepResult result = guardian_->apply(connection.id);
  connection.outcome = result.outcome;
  connection.reason = result.text();
  if (result.outcome != StepOutcome::kDone) return;
  connection.before = result.before;
  connection.after = result.after;
  // With slices it is applied several times; the first time counts.
  if (!connection.applied) connection.since = result.at;
  connection.applied = true;
}

void Treatment::apply_all() {
  for (MatchedConnection& one : connections_) {
    if (one.treatable && one.treated && one.outcome != StepOutcome::kClosed) apply(one);
  }
  applied_ = true;
}

void Treatment::restore_all_for_now() {
  for (const MatchedConnection& one : connections_) {
    if (one.applied) static_cast<void>(guardian_->restore(one.id));
  }
  applied_ = false;
}

void Treatment::run_halves(const RunHooks& hooks) {
  const Duration before = baseline_length();
  const Duration total = before + options_.length;
  windows_.before_is_control = design_ == Design::kAll;
  windows_.baseline.from = wall_clock_now();
  take_snapshot();
  const bool going = phase(hooks, {"before the change", before, Duration{0}, total, false});
  windows_.baseline.until = wall_clock_now();
  result_.baseline = windows_.baseline.until - windows_.baseline.from;
  if (!going) return;
  take_snapshot();
  apply_all();
  windows_.treatment.from = wall_clock_now();
  static_cast<void>(phase(hooks, {"treated", options_.length, before, total, true}));
  windows_.treatment.until = wall_clock_now();
  take_snapshot();
}

void Treatment::run_slices(const RunHooks& hooks) {
  const std::vector<bool> slices = draw_slices(slice_count() / 2, rng_);
  // All slices have one length, so that treated and untreated time are equal.
  const Duration each = options_.length / static_cast<std::int64_t>(slices.size());
  windows_.treatment.from = wall_clock_now();
  take_snapshot();
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (slices[i] && !applied_) apply_all();
    if (!slices[i] && applied_) restore_all_for_now();
    Slice slice{{wall_clock_now(), {}}, slices[i]};
    const bool going = phase(hooks, {"slice by slice", each, each * static_cast<std::int64_t>(i),
                                     options_.length, true});
    slice.window.until = wall_clock_now();
    windows_.slices.push_back(slice);
    take_snapshot();
    if (!going) break;
  }
  windows_.treatment.until = wall_clock_now();
}

Measurement Treatment::measure() {
  std::vector<Subject> subjects;
  for (const MatchedConnection& one : connections_) {
    subjects.push_back({one.local, one.remote, one.target.inode, one.treated,
                        one.treatable && (!one.treated || one.applied), one.since});
  }
  if (capture_ == nullptr) return measure_tcp_info(snapshots_, subjects, windows_, rng_);
  // Packets of the last moments are still in the kernel's ring.
  for (int i = 0; i < kLastLooks; ++i) static_cast<void>(take_packets(kTick));
  const probe::CaptureCounters counters = capture_->counters();
  result_.packets = counters.tcp;
  result_.packets_lost = counters.lost;
  return measure_turns(analyser_->finish(), subjects, windows_, rng_);
}

Result<TreatmentResult> Treatment::run(const RunHooks& hooks) {
  open_capture();
  looked_ = hooks.now();
  result_.design = design_;
  design_ == Design::kSlices ? run_slices(hooks) : run_halves(hooks);
  result_.treated_for = windows_.treatment.until - windows_.treatment.from;
  if (guardian_->lost()) result_.partial = true;
  // A change is kept at a normal end only.
  const bool keep = options_.keep && !result_.partial;
  if (keep && design_ == Design::kSlices && !applied_) apply_all();
  result_.rollback = guardian_->finish(keep);
  result_.guardian_lost = guardian_->lost();
  result_.kept = result_.rollback.kept > 0;
  result_.rolled_back = result_.rollback.complete();
  result_.measured = measure();
  result_.connections = connections_;
  return std::move(result_);
}

}  // namespace tailward::treat
