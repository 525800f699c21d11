// One treatment: choose, note, watch, change, watch, change back, compare.
//
// Three designs. Halves: half of the connections are treated, both halves are measured at the same
// time. Slices, where there are too few connections for halves: all are treated in short random
// slices of time, as in a switchback. All (--all): before and after, without a control.
//
// Thread safety: one thread. Destroying it undoes whatever is still changed.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "diag/packet_analyser.h"
#include "probe/capture.h"
#include "probe/sockets.h"
#include "tcp/socket_facts.h"
#include "treat/choice.h"
#include "treat/guardian.h"
#include "treat/measure.h"
#include "treat/setting.h"

namespace tailward::treat {

inline constexpr Duration kLengthMin = std::chrono::seconds(1);
// Fewer connections than this are no two halves.
inline constexpr std::size_t kHalvesMin = 4;

struct TreatmentOptions {
  std::optional<int> pid = {};
  std::optional<std::uint16_t> port = {};
  std::optional<RemoteFilter> remote = {};
  std::string remote_text = {};  // as it was typed
  std::vector<Setting> settings;
  Duration length = std::chrono::seconds(30);
  bool all = false;
  bool keep = false;
  std::uint64_t seed = 1;
};

enum class Design { kHalves, kSlices, kAll };
std::string_view to_string(Design design);

// A connection that matches.
struct MatchedConnection {
  Target target;
  int pid = 0;
  tcp::SocketAddress local;
  tcp::SocketAddress remote;
  std::uint64_t activity = 0;
  bool noted = false;                           // `before` is known
  bool treatable = false;                       // noted, and there is something to change
  bool treated = false;                         // drawn; with slices: all
  bool late = false;                            // came during the treatment
  std::uint32_t id = 0;                         // with the guardian
  StepOutcome outcome = StepOutcome::kAlready;  // of the change
  std::string reason = {};                      // why it is not treatable, or was not treated
  std::array<State, kOptions> before{};
  std::array<State, kOptions> after{};
  bool applied = false;  // was changed, be it for a while
  Duration since{};      // when it was first changed or came, as packets are stamped
};

// What the caller lends: time, and the decision to end early.
struct RunHooks {
  std::function<TimePoint()> now;
  // Waits for this long at most; true when the measurement is to end early.
  std::function<bool(Duration)> wait;
  std::function<void(std::string_view phase, Duration elapsed, Duration total)> progress;
};

struct TreatmentResult {
  Design design = Design::kHalves;
  std::vector<MatchedConnection> connections;
  Measurement measured;
  Rollback rollback;
  bool kept = false;
  bool rolled_back = false;  // nothing is different from before
  bool guardian_lost = false;
  bool partial = false;  // ended early
  bool process_ended = false;
  Duration baseline{};  // watched before the change
  Duration treated_for{};
  std::optional<Error> no_capture;  // why TCP_INFO had to do
  std::uint64_t packets = 0;
  std::uint64_t packets_lost = 0;
};

class Treatment {
 public:
  // Finds the connections and notes their old values; changes nothing. Forks (treat/guardian.h).
  // Errors: kInvalid (no such process, no connection that matches, nothing to change, a non-sticky
  // option that is to be kept), kDenied, kUnsupported.
  static Result<std::unique_ptr<Treatment>> prepare(const TreatmentOptions& options);

  [[nodiscard]] Design design() const { return design_; }
  [[nodiscard]] const std::vector<MatchedConnection>& connections() const { return connections_; }
  [[nodiscard]] const TreatmentOptions& options() const { return options_; }
  [[nodiscard]] std::string process_name() const;
  [[nodiscard]] Duration baseline_length() const;
  [[nodiscard]] std::size_t slice_count() const;

  // Once. Errors: what was changed has been restored.
  Result<TreatmentResult> run(const RunHooks& hooks);

 private:
  explicit Treatment(const TreatmentOptions& options) : options_(options), rng_(options.seed) {}

  Result<void> find(std::vector<tcp::SocketFacts>& found);
  Result<void> note_all(const std::vector<tcp::SocketFacts>& found);
  MatchedConnection& note(const tcp::SocketFacts& facts);
  void draw();
  void choose_ports(const std::vector<tcp::SocketFacts>& all);
  void open_capture();
  struct Stretch {
    std::string_view name;
    Duration length;
    Duration before;  // of the whole measurement
    Duration total;
    bool new_ones;  // connections that come meanwhile take part
  };
  bool phase(const RunHooks& hooks, const Stretch& stretch);
  bool take_packets(Duration wait);
  void take_snapshot();
  void look_for_new();
  void apply(MatchedConnection& connection);
  void apply_all();
  void restore_all_for_now();
  void run_halves(const RunHooks& hooks);
  void run_slices(const RunHooks& hooks);
  Measurement measure();

  TreatmentOptions options_;
  Rng rng_;
  Design design_ = Design::kHalves;
  std::vector<probe::Process> processes_;
  std::unique_ptr<Guardian> guardian_;  // refers to the processes
  std::vector<MatchedConnection> connections_;
  std::vector<std::uint16_t> ports_;  // to be captured; empty: all
  std::unique_ptr<probe::LiveCapture> capture_;
  std::unique_ptr<diag::PacketAnalyser> analyser_;
  std::vector<std::vector<BusyTime>> snapshots_;
  Windows windows_;
  bool applied_ = false;
  TimePoint looked_{};
  TreatmentResult result_;
};

}  // namespace tailward::treat
