#include "plan/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plan/hdr.h"

namespace tailward::plan {
namespace {

constexpr const char* kHint =
    "--format is list (one number per line), csv, nginx, envoy or hdr; nginx:'FORMAT' and "
    "envoy:'FORMAT' take the server's own";

// One latency per line.
class List : public LogFormat {
 public:
  List() {
    name = "list";
    understood = "one latency per line";
  }
  Result<void> take(std::string_view line, std::uint64_t number, Recorder& into) override {
    const std::string_view text = trimmed(line);
    if (text.empty() || text.starts_with('#')) return {};
    return into.text(text, number);
  }
};

// "Tag=x,start,length,max,base64"; the lines of one tag, or of all.
class HdrLog : public LogFormat {
 public:
  HdrLog(std::string tag, Unit of) : tag_(std::move(tag)) {
    name = "hdr";
    unit = of;
    understood =
        "HdrHistogram log" + (tag_.empty() ? "" : fmt::format(", tag {}", in_quotes(tag_)));
  }
  Result<void> take(std::string_view line, std::uint64_t number, Recorder& into) override {
    line = trimmed(line);
    if (line.empty() || line.starts_with('#') || line.starts_with('"')) return {};
    constexpr std::string_view kTag = "Tag=";
    std::string_view tag;
    if (line.starts_with(kTag)) {
      tag = line.substr(kTag.size(), line.find(',') - kTag.size());
      line.remove_prefix(std::min(line.find(','), line.size() - 1) + 1);
    }
    if (!tag_.empty() && tag != tag_) {
      if (tags_.size() < kTagsMax) tags_.emplace(tag);
      return {};
    }
    found_ = true;
    if (std::count(line.begin(), line.end(), ',') != 3) {
      into.skip(Skip::kNoMatch, number, line);
      return {};
    }
    return histogram(line.substr(line.rfind(',') + 1), number, into);
  }
  Result<void> end() override {
    if (found_ || tag_.empty()) return {};
    std::string there;
    for (const std::string& tag : tags_) there += (there.empty() ? "" : ", ") + in_quotes(tag);
    return fail(ErrorKind::kInvalid, fmt::format("no line has the tag {}", in_quotes(tag_)),
                there.empty() ? "the lines have no tags" : fmt::format("the tags are {}", there));
  }

 private:
  static constexpr std::size_t kTagsMax = 20;

  Result<void> histogram(std::string_view base64, std::uint64_t number, Recorder& into) {
    const auto in_time = [this](std::uint64_t value) {
      const double ns = static_cast<double>(value) * static_cast<double>(one(unit).count());
      return Duration{
          static_cast<std::int64_t>(std::min(ns, static_cast<double>(kForever.count())))};
    };
    const Result<void> decoded = decode_hdr(base64, [&](const HdrCount& count) {
      into.latencies(in_time(count.low), in_time(count.low + (count.high - count.low) / 2),
                     in_time(count.high), count.times);
    });
    if (decoded) return {};
    if (decoded.error().kind == ErrorKind::kUnsupported) {
      return fail(decoded.error().in(fmt::format("line {}", number)));
    }
    into.skip(Skip::kDamaged, number);
    return {};
  }

  std::string tag_;
  std::set<std::string, std::less<>> tags_;
  bool found_ = false;
};

// Only text has lines that mean something.
Result<void> check_text(std::span<const std::string> first_lines) {
  std::size_t number = 0;
  for (const std::string& line : first_lines) {
    ++number;
    const auto strange = std::find_if(line.begin(), line.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r' && c != '\f' &&
             c != '\x1b';
    });
    if (strange == line.end()) continue;
    return fail(ErrorKind::kInvalid,
                fmt::format("binary data: byte 0x{:02x} in line {}, column {}",
                            static_cast<unsigned>(*strange), number, strange - line.begin() + 1),
                "only text (also as gzip) is read");
  }
  return {};
}

bool is_number(std::string_view line) {
  const Skip skip = parse_value(line, Unit::kMs).skip;
  return skip != Skip::kNoNumber && skip != Skip::kNoValue;
}

template <class Predicate>
bool most(std::span<const std::string> lines, const Predicate& predicate) {
  const auto count = std::count_if(lines.begin(), lines.end(), predicate);
  return static_cast<std::size_t>(count) * 2 > lines.size();
}

Result<std::unique_ptr<LogFormat>> guess(const ReadOptions& options,
                                         std::span<const std::string> lines) {
  if (std::any_of(lines.begin(), lines.end(), looks_like_hdr)) return make_hdr(options, lines);
  const std::string& first = lines.front();
  const bool header = parse_value(first, Unit::kMs).skip == Skip::kNoNumber;
  if (most(lines, is_number) && !header && options.column.empty()) return std::make_unique<List>();
  if (first.starts_with('{') || first.starts_with("[{")) {
    return fail(ErrorKind::kInvalid, "the lines are JSON",
                "take the latencies out first: jq -r .duration_ms FILE | tailward plan "
                "--latencies -");
  }
  ReadOptions known = options;
  known.format = "envoy";
  if (most(lines, looks_like_envoy)) return make_access_log(known, lines);
  known.format = "nginx";
  if (most(lines, looks_like_access_log)) return make_access_log(known, lines);
  if (looks_like_csv(lines)) return make_csv(options, lines);
  return fail(ErrorKind::kInvalid,
              fmt::format("what is this? The first line is {}", in_quotes(first, 60)), kHint);
}

}  // namespace

bool looks_like_hdr(std::string_view line) {
  return line.starts_with("#[Histogram log format") || line.starts_with("\"StartTimestamp\"") ||
         line.find(",HIST") != std::string_view::npos;
}

Result<std::unique_ptr<LogFormat>> make_hdr(const ReadOptions& options,
                                            std::span<const std::string> /*first_lines*/) {
  return std::make_unique<HdrLog>(options.column, options.unit.value_or(Unit::kNs));
}

Result<std::unique_ptr<LogFormat>> choose_format(const ReadOptions& options,
                                                 std::span<const std::string> first_lines) {
  if (const Result<void> text = check_text(first_lines); !text) return fail(text.error());
  // What is nothing to every format but CSV and HdrHistogram's.
  std::vector<std::string> lines;
  for (const std::string& line : first_lines) {
    if (!trimmed(line).empty() && (!line.starts_with('#') || looks_like_hdr(line))) {
      lines.push_back(line);
    }
  }
  if (lines.empty()) return fail(ErrorKind::kInvalid, "nothing but empty lines and comments");
  const std::string_view kind =
      std::string_view(options.format).substr(0, options.format.find(':'));
  const bool bare = kind.size() == options.format.size();
  Result<std::unique_ptr<LogFormat>> format = fail(
      ErrorKind::kInvalid, fmt::format("there is no format {}", in_quotes(options.format)), kHint);
  if (kind == "auto" && bare) format = guess(options, lines);
  if (kind == "csv" && bare) format = make_csv(options, lines);
  if (kind == "hdr" && bare) format = make_hdr(options, lines);
  if (kind == "nginx" || kind == "envoy") format = make_access_log(options, lines);
  if (kind == "list" && bare) {
    if (!options.column.empty()) {
      return fail(ErrorKind::kInvalid, "a list has no columns", "leave out --column");
    }
    format = std::make_unique<List>();
  }
  if (format && options.unit) (*format)->unit = *options.unit;
  return format;
}

}  // namespace tailward::plan
