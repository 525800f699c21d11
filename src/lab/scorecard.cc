#include "lab/scorecard.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>

#include "base/units.h"
#include "faults/faulty_service.h"
#include "net/link.h"
#include "probe/capture.h"

namespace tailward::lab {
namespace {

using report::Json;

constexpr Duration kWarmUp = std::chrono::milliseconds(300);  // for the clients to connect
constexpr double kShareMin = 0.95;                            // of first findings that are right

constexpr std::string_view kLive = "live";
constexpr std::string_view kCapture = "capture";
constexpr std::string_view kClientCapture = "client's capture";

// The folder for the captures: the one to keep them in, or a temporary one.
class CaptureFolder {
 public:
  explicit CaptureFolder(const std::string& keep) : keep_(!keep.empty()) {
    std::error_code ignored;
    path_ = keep;
    if (keep_) {
      std::filesystem::create_directories(path_, ignored);
      return;
    }
    // mkdtemp(): root writes here, so nobody else may have prepared the folder, or a link of its
    // name.
    std::string name =
        (std::filesystem::temp_directory_path(ignored) / "scorecard-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~CaptureFolder() {
    std::error_code ignored;
    if (!keep_ && !path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  CaptureFolder(const CaptureFolder&) = delete;
  CaptureFolder& operator=(const CaptureFolder&) = delete;
  [[nodiscard]] bool made() const { return !path_.empty(); }
  [[nodiscard]] std::string file(const faults::FaultModel& model, std::string_view what) const {
    return (path_ / fmt::format("{}-{}-{}.pcap", to_string(model.cause), model.seed, what))
        .string();
  }

 private:
  bool keep_;
  std::filesystem::path path_;
};

ScoredRun score(const faults::FaultModel& model, std::string_view from,
                const diagnose::Diagnosis& diagnosis) {
  ScoredRun result{.fault = model.cause,
                   .seed = model.seed,
                   .over_link = model.over_link,
                   .from = std::string(from),
                   .requests = diagnosis.packets.turns_seen,
                   .sentence = diagnosis.network.sentence};
  if (!diagnosis.network.findings.empty()) {
    const diag::Finding& first = diagnosis.network.findings.front();
    result.found = first.cause;
    result.certainty = first.certainty;
    result.sentence = first.sentence;
  }
  // Every fault here is a cause. A healthy server has no layer at fault.
  result.layer_right = diagnosis.network.findings.empty()
                           ? model.cause == diag::Cause::kNone
                           : diagnosis.network.findings.front().layer == findings::Layer::kCause &&
                                 model.cause != diag::Cause::kNone;
  return result;
}

// Captures what the clients' end of the link sees, into a file.
class ClientCapture {
 public:
  ClientCapture(faults::FaultyService& service, const std::string& file) {
    static_cast<void>(service.run_at_client([&] {
      Result<std::unique_ptr<probe::LiveCapture>> opened = probe::LiveCapture::open(
          {.interface = net::Link::interface_name(), .ports = {service.port()}, .write_to = file});
      if (opened) capture_ = std::move(*opened);
    }));
    if (!capture_) return;
    thread_ = std::thread([this] {
      probe::SegmentSink nothing = [](const tcp::Segment&) {};
      while (!done_ && capture_->poll(std::chrono::milliseconds(50), nothing)) {
      }
    });
  }
  ~ClientCapture() { finish(); }
  ClientCapture(const ClientCapture&) = delete;
  ClientCapture& operator=(const ClientCapture&) = delete;
  // False: there was no capture.
  bool finish() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
    const bool had = capture_ != nullptr;
    capture_.reset();
    return had;
  }

 private:
  std::unique_ptr<probe::LiveCapture> capture_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

Result<void> run_once(const faults::FaultModel& model, const ScorecardOptions& options,
                      const CaptureFolder& folder, const diagnose::Hooks& hooks,
                      Scorecard& scorecard) {
  Result<std::unique_ptr<faults::FaultyService>> service = faults::FaultyService::start(model);
  if (!service) return fail(service.error());
  hooks.wait(kWarmUp);
  const std::string file = folder.file(model, "server");
  const std::string client_file = folder.file(model, "client");
  std::unique_ptr<ClientCapture> at_client;
  if (model.over_link) at_client = std::make_unique<ClientCapture>(**service, client_file);
  // What `tailward diagnose --pid` does.
  const Result<diagnose::Diagnosis> live = diagnose::diagnose_live(
      {.pid = (*service)->server_pid(), .watch = options.watch, .write_to = file}, hooks);
  const bool has_client_file = at_client && at_client->finish();
  if (!live) return fail(live.error());
  if (live->partial) {
    if (hooks.stop_asked && hooks.stop_asked()) {
      scorecard.partial = true;
      return {};
    }
    return fail(ErrorKind::kDisconnected, "the run ended early: is the faulty server still there?");
  }
  scorecard.cases.push_back(score(model, kLive, *live));
  const auto from_file = [&](const std::string& path, std::string_view from) -> Result<void> {
    // Somebody who captures a service knows its port.
    const Result<diagnose::Diagnosis> diagnosis =
        diagnose::diagnose_capture({.path = path, .port = (*service)->port()}, hooks);
    if (!diagnosis) return fail(diagnosis.error());
    scorecard.cases.push_back(score(model, from, *diagnosis));
    return {};
  };
  if (Result<void> read = from_file(file, kCapture); !read) return read;
  return has_client_file ? from_file(client_file, kClientCapture) : Result<void>{};
}

std::string found_text(diag::Cause cause) { return std::string(to_string(cause)); }

Json confusion_of(const Scorecard& scorecard, std::string_view from) {
  Json confusion = Json::object();
  for (const ScoredRun& one : scorecard.cases) {
    if (one.from != from) continue;
    Json& cell = confusion[found_text(one.fault)][found_text(one.found)];
    cell = cell.is_null() ? 1 : cell.get<int>() + 1;
  }
  return confusion;
}

Json score_of(const Scorecard& scorecard, std::string_view from) {
  std::uint64_t layers = 0;
  for (const ScoredRun& one : scorecard.cases)
    layers += one.from == from && one.layer_right ? 1 : 0;
  const std::uint64_t count = scorecard.count(from);
  const auto share = [count](std::uint64_t part) {
    return count == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(count);
  };
  return {{"runs", count},
          {"first_finding_right", share(scorecard.right(from))},
          {"layer_right", share(layers)},
          {"confusion", confusion_of(scorecard, from)}};
}

struct Score {
  std::uint64_t right = 0, all = 0;
};

// By fault, and by what was diagnosed.
std::map<std::pair<diag::Cause, std::string>, Score> scores_of(const Scorecard& scorecard) {
  std::map<std::pair<diag::Cause, std::string>, Score> scores;
  for (const ScoredRun& one : scorecard.cases) {
    Score& score = scores[{one.fault, one.from}];
    ++score.all;
    score.right += one.right() ? 1 : 0;
  }
  return scores;
}

report::Table score_table(const Scorecard& scorecard) {
  auto scores = scores_of(scorecard);
  report::Table table;
  table.title = "First finding right";
  table.columns = {{"fault", report::Align::kLeft},
                   {"live"},
                   {"capture"},
                   {"client's"},
                   {"what else was found first", report::Align::kLeft}};
  for (const faults::ServerFault& fault : faults::server_faults()) {
    // There is no capture without a live run.
    if (scores[{fault.cause, std::string(kLive)}].all == 0) continue;
    std::map<std::string, std::uint64_t> others;
    for (const ScoredRun& one : scorecard.cases) {
      if (one.fault != fault.cause || one.right()) continue;
      ++others[fmt::format("{} ({})", found_text(one.found), one.from)];
    }
    std::vector<report::Cell> row{report::text_cell(found_text(fault.cause))};
    for (const std::string_view from : {kLive, kCapture, kClientCapture}) {
      const auto [right, all] = scores[{fault.cause, std::string(from)}];
      row.push_back(
          report::text_cell(all == 0 ? "–" : fmt::format("{}/{}", right, all),
                            right == all ? report::Emphasis::kNone : report::Emphasis::kBad));
    }
    std::string text;
    for (const auto& [other, count] : others) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, other);
    }
    row.push_back(report::text_cell(text));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::uint64_t Scorecard::count(std::string_view from) const {
  return static_cast<std::uint64_t>(std::count_if(
      cases.begin(), cases.end(), [from](const ScoredRun& one) { return one.from == from; }));
}

std::uint64_t Scorecard::right(std::string_view from) const {
  return static_cast<std::uint64_t>(
      std::count_if(cases.begin(), cases.end(),
                    [from](const ScoredRun& one) { return one.from == from && one.right(); }));
}

bool Scorecard::ok() const {
  const bool healthy_clean = std::none_of(cases.begin(), cases.end(), [](const ScoredRun& one) {
    return one.fault == diag::Cause::kNone && !one.right() && one.from != kClientCapture;
  });
  const auto scores = scores_of(*this);
  // For each fault: a bar over all of them would allow that one is missed every time.
  const bool enough = std::all_of(scores.begin(), scores.end(), [](const auto& one) {
    const Score& score = one.second;
    return one.first.second == kClientCapture ||
           static_cast<double>(score.right) >= kShareMin * static_cast<double>(score.all);
  });
  return failed.empty() && count(kLive) > 0 && healthy_clean && enough;
}

Result<Scorecard> make_scorecard(const ScorecardOptions& options, const diagnose::Hooks& hooks) {
  const std::vector<faults::ServerFault>& which =
      options.which.empty() ? faults::server_faults() : options.which;
  const CaptureFolder folder(options.keep_in);
  if (!folder.made()) {
    return fail(ErrorKind::kDenied, "no folder for the captures can be made",
                "--keep FOLDER, or a TMPDIR that can be written to");
  }
  Scorecard scorecard;
  diagnose::Hooks quiet = hooks;
  quiet.progress = {};
  const TimePoint began = hooks.now();
  const std::uint64_t total = which.size() * options.runs;
  std::uint64_t done = 0;
  for (std::uint64_t run = 0; run < options.runs; ++run) {
    for (const faults::ServerFault& fault : which) {
      if (hooks.stop_asked && hooks.stop_asked()) {
        scorecard.partial = true;
        return scorecard;
      }
      const faults::FaultModel model =
          faults::draw_fault_model(fault, options.seed + run, options.severity);
      const Result<void> ran = run_once(model, options, folder, quiet, scorecard);
      if (!ran) {
        // Without the right to make a network no run can succeed: say so at once.
        if (ran.error().kind == ErrorKind::kDenied && scorecard.cases.empty())
          return fail(ran.error());
        scorecard.failed.push_back(fmt::format("{}, seed {}: {}", to_string(model.cause),
                                               model.seed, ran.error().message));
      }
      ++done;
      if (hooks.progress) {
        hooks.progress({std::string(to_string(fault.cause)), done, total, hooks.now() - began});
      }
    }
  }
  return scorecard;
}

report::Report to_report(const Scorecard& scorecard, const ScorecardOptions& options,
                         const report::RunInfo& run) {
  report::Report report;
  report.title = "Diagnosis against faulty servers";
  report.run = run;
  report.summary = fmt::format(
      "The first finding was right in {} of {} live runs and in {} of {} captures of them; watched "
      "for {} each.",
      scorecard.right(kLive), scorecard.count(kLive), scorecard.right(kCapture),
      scorecard.count(kCapture), format_duration(options.watch));
  report.add(score_table(scorecard));
  for (const ScoredRun& one : scorecard.cases) {
    if (one.right()) continue;
    report.add(
        report::Note{report::NoteKind::kWarning,
                     fmt::format("{}, seed {}{}, {}: found {} ({}): {}", to_string(one.fault),
                                 one.seed, one.over_link ? " over a link" : "", one.from,
                                 to_string(one.found), to_string(one.certainty), one.sentence)});
  }
  for (const std::string& failed : scorecard.failed) {
    report.add(report::Note{report::NoteKind::kLost, failed});
  }
  return report;
}

Json to_json(const Scorecard& scorecard, const ScorecardOptions& options,
             const report::RunInfo& run) {
  Json json = report::envelope(run);
  // The contract's fields are those of the live runs; the captures stand beside them.
  const Json live = score_of(scorecard, kLive);
  for (const auto& [name, value] : live.items()) json[name] = value;
  json["capture"] = score_of(scorecard, kCapture);
  json["client_capture"] = score_of(scorecard, kClientCapture);
  json["runs_of_each"] = options.runs;
  json["failed"] = scorecard.failed;
  json["cases"] = Json::array();
  for (const ScoredRun& one : scorecard.cases) {
    json["cases"].push_back({{"sick", to_string(one.fault)},
                             {"seed", one.seed},
                             {"over_link", one.over_link},
                             {"from", one.from},
                             {"found", to_string(one.found)},
                             {"certainty", to_string(one.certainty)},
                             {"requests", one.requests},
                             {"sentence", one.sentence}});
  }
  return json;
}

}  // namespace tailward::lab
