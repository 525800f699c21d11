#include "plan/read.h"

#include <fmt/format.h>

#include "base/units.h"
#include "plan/lines.h"

namespace tailward::plan {
namespace {

// The lines that the format is told by.
struct Start {
  std::vector<std::string> lines;
  bool ended = false;  // there are no others
};

Result<Start> read_start(LineReader& reader) {
  constexpr std::size_t kBytes = std::size_t{64} << 10;
  Start start;
  std::size_t bytes = 0;
  while (start.lines.size() < kFirstLines && bytes < kBytes) {
    std::string_view line;
    const Result<bool> more = reader.next(line);
    if (!more) return fail(more.error());
    if (!*more) {
      start.ended = true;
      break;
    }
    start.lines.emplace_back(line);
    bytes += line.size();
  }
  return start;
}

Result<void> judge(const Reading& reading) {
  const std::string skipped = describe(reading.skipped);
  const std::string why = skipped.empty() ? "" : fmt::format("; {}", skipped);
  if (reading.latencies == 0) {
    return fail(ErrorKind::kInvalid,
                fmt::format("no latency in {} line{} read as {}{}", format_count(reading.lines),
                            reading.lines == 1 ? "" : "s", reading.understood, why),
                "--format, --column and --unit say how it is to be read");
  }
  const auto all = static_cast<double>(reading.latencies + reading.skipped.lines);
  // In a log of histograms one line is many latencies.
  const double of = reading.format == "hdr" ? static_cast<double>(reading.lines) : all;
  if (static_cast<double>(reading.skipped.lines) > kSkippedMax * of) {
    return fail(ErrorKind::kInvalid,
                fmt::format("too many lines without a latency, read as {}: of {} lines {}",
                            reading.understood, format_count(reading.lines), skipped),
                "--format, --column and --unit say how it is to be read");
  }
  if (reading.samples.histogram.max() == Duration{0}) {
    return fail(ErrorKind::kInvalid,
                fmt::format("all of the {} latencies are 0, read as {}",
                            format_count(reading.latencies), reading.understood),
                "is it the right column, and does the log tell times this short?");
  }
  return {};
}

}  // namespace

Result<Reading> read_latencies(ByteSource source, const ReadOptions& options) {
  LineReader reader(std::move(source));
  const Result<Start> start = read_start(reader);
  if (!start) return fail(start.error());
  if (start->lines.empty()) {
    return reader.stopped() ? fail(ErrorKind::kCancelled, "stopped before anything was read")
                            : fail(ErrorKind::kInvalid, "there is nothing to read: it is empty");
  }
  Result<std::unique_ptr<LogFormat>> format = choose_format(options, start->lines);
  if (!format) return fail(format.error());
  LogFormat& log = **format;
  Recorder recorder(log.unit);
  std::uint64_t number = 0;
  for (const std::string& line : start->lines) {
    if (const Result<void> took = log.take(line, ++number, recorder); !took) {
      return fail(took.error());
    }
  }
  while (!start->ended) {
    std::string_view line;
    const Result<bool> more = reader.next(line);
    if (!more) return fail(more.error());
    if (!*more) break;
    if (const Result<void> took = log.take(line, reader.number(), recorder); !took) {
      return fail(took.error());
    }
  }
  if (!reader.stopped()) {
    if (const Result<void> ended = log.end(); !ended) return fail(ended.error());
  }
  Reading reading;
  reading.format = log.name;
  reading.understood = fmt::format(
      "{}{}{}", log.understood,
      recorder.own_units() ? ", each with its unit" : fmt::format(" in {}", to_string(log.unit)),
      reader.compressed() ? ", gzip" : "");
  reading.lines = reader.number();
  reading.skipped = recorder.skipped();
  reading.partial = reader.stopped();
  reading.samples = recorder.take();
  reading.latencies = reading.samples.histogram.count();
  if (const Result<void> good = judge(reading); !good) return fail(good.error());
  return reading;
}

std::string describe(const Skipped& skipped) {
  if (skipped.lines == 0) return "";
  std::string reasons;
  for (std::size_t why = 0; why < kSkipCount; ++why) {
    if (skipped.by_reason[why] == 0) continue;
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ",
                           format_count(skipped.by_reason[why]), to_string(static_cast<Skip>(why)));
  }
  return fmt::format("{} gave none ({}; first {})", format_count(skipped.lines), reasons,
                     skipped.first_why);
}

}  // namespace tailward::plan
