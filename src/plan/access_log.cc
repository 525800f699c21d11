// Access logs of nginx and Envoy.
//
// nginx: https://nginx.org/en/docs/http/ngx_http_log_module.html; $request_time and
// $upstream_response_time are seconds with milliseconds. Envoy: its default format string and the
// one that Istio sets, both with %DURATION% in milliseconds.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plan/formats.h"
#include "plan/pattern.h"

namespace tailward::plan {
namespace {

constexpr std::string_view kRequestTime = "request_time";
constexpr std::string_view kUpstreamTime = "upstream_response_time";

constexpr std::string_view kEnvoyDefault =
    "[%START_TIME%] \"%REQUEST%\" %CODE% %FLAGS% %RECEIVED% %SENT% %DURATION% %REST%";
constexpr std::string_view kEnvoyIstio =
    "[%START_TIME%] \"%REQUEST%\" %CODE% %FLAGS% %DETAILS% %TERMINATION% \"%FAILURE%\" %RECEIVED% "
    "%SENT% %DURATION% %REST%";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "0.123": as nginx writes its times, and hardly anything else.
bool is_nginx_time(std::string_view text) {
  // A point and three digits.
  constexpr std::size_t kTail = 4;
  if (text.size() <= kTail || text[text.size() - kTail] != '.') return false;
  text.remove_suffix(kTail);
  return std::all_of(text.begin(), text.end(), is_digit);
}

std::string_view unquoted(std::string_view text) {
  const bool quotes = text.size() > 1 && text.starts_with('"') && text.ends_with('"');
  return quotes ? text.substr(1, text.size() - 2) : text;
}

// The last field, and with it what comes before.
std::string_view last_field(std::string_view line, std::string_view& before) {
  line = trimmed(line);
  const std::size_t blank = line.rfind(' ');
  before = blank == std::string_view::npos ? std::string_view() : line.substr(0, blank);
  return unquoted(blank == std::string_view::npos ? line : line.substr(blank + 1));
}

// The value after `key` ("rt="), where the key begins a word.
std::optional<std::string_view> keyed(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    if (at > 0 && std::string_view(" \t,;\"|").find(line[at - 1]) == std::string_view::npos) {
      continue;
    }
    line.remove_prefix(at + key.size());
    if (line.starts_with('"')) return line.substr(1, line.find('"', 1) - 1);
    std::string_view value = line.substr(0, line.find_first_of(" \t;|\"]}"));
    if (value.ends_with(',')) value.remove_suffix(1);
    return value;
  }
  return std::nullopt;
}

// Several servers were asked one after the other, "0.010, 0.200 : 0.030": the request has waited
// for all of them. Those that were not reached are "-".
std::string summed(std::string_view text) {
  double sum = 0;
  bool any = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(",:"), text.size());
    const Value one = parse_value(text.substr(0, end), Unit::kS);
    if (one.skip == Skip::kNone) sum += to_seconds(one.latency);
    any = any || one.skip == Skip::kNone;
    if (one.skip != Skip::kNone && one.skip != Skip::kNoValue) return std::string(text);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return any ? fmt::format("{:.9f}", sum) : "-";
}

// A line whose latency is found by `find`, a function of the line.
template <class Find>
class AccessLog : public LogFormat {
 public:
  explicit AccessLog(Find find) : find_(std::move(find)) {}

  Result<void> take(std::string_view line, std::uint64_t number, Recorder& into) override {
    if (trimmed(line).empty() || line.starts_with('#')) return {};
    const std::optional<std::string_view> found = find_(line);
    if (!found) {
      into.skip(Skip::kNoMatch, number, line);
      return {};
    }
    if (found->find_first_of(",:") == std::string_view::npos) return into.text(*found, number);
    return into.text(summed(*found), number);
  }

 private:
  Find find_;
};

template <class Find>
std::unique_ptr<LogFormat> access_log(std::string_view name, std::string_view understood, Unit unit,
                                      Find find) {
  auto log = std::make_unique<AccessLog<Find>>(std::move(find));
  log->name = name;
  log->understood = understood;
  log->unit = unit;
  return log;
}

// In how many of the lines `find` sees a latency.
template <class Find>
std::size_t hits(std::span<const std::string> lines, const Find& find) {
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [&find](const std::string& line) {
        const std::optional<std::string_view> found = find(line);
        if (!found) return false;
        const Skip skip = parse_value(summed(*found), Unit::kS).skip;
        return skip == Skip::kNone || skip == Skip::kNoValue;
      }));
}

auto keyed_finder(std::string key) {
  return [key = std::move(key)](std::string_view line) { return keyed(line, key); };
}

std::optional<std::string_view> last_time(std::string_view line) {
  std::string_view before;
  const std::string_view field = last_field(line, before);
  if (field != "-" && !is_nginx_time(field)) return std::nullopt;
  return field;
}

bool two_times(std::string_view line) {
  std::string_view before;
  if (!is_nginx_time(last_field(line, before))) return false;
  std::string_view ignored;
  return is_nginx_time(last_field(before, ignored));
}

tl::unexpected<Error> no_time() {
  return fail(ErrorKind::kInvalid,
              "this access log has no times: nginx's default formats do not write them",
              "add $request_time to log_format, or, when it is there, give the format: "
              "--format nginx:'$remote_addr … $request_time'");
}

// How people label the two times in a log_format.
struct Key {
  std::string_view text;
  std::string_view variable;
};
constexpr std::array<Key, 7> kKeys{{{"request_time=", kRequestTime},
                                    {"request_time:", kRequestTime},
                                    {"rt=", kRequestTime},
                                    {"reqtime=", kRequestTime},
                                    {"upstream_response_time=", kUpstreamTime},
                                    {"urt=", kUpstreamTime},
                                    {"upstream_time=", kUpstreamTime}}};

// The format is not given: the ways in which people write the times.
Result<std::unique_ptr<LogFormat>> guess_nginx(const ReadOptions& options,
                                               std::span<const std::string> lines) {
  if (!options.column.empty()) {
    for (const std::string_view sign : {"=", ":"}) {
      const auto find = keyed_finder(options.column + std::string(sign));
      // More than half of the first lines: some belong to other formats or have no time.
      if (hits(lines, find) * 2 <= lines.size()) continue;
      return access_log("nginx", fmt::format("access log, {}", options.column), Unit::kS, find);
    }
    return fail(ErrorKind::kInvalid, fmt::format("no {}= in the lines", options.column),
                "give the format: --format nginx:'$remote_addr … $request_time'");
  }
  const auto with_key = [&lines](std::string_view variable) -> std::unique_ptr<LogFormat> {
    for (const Key& key : kKeys) {
      const auto find = keyed_finder(std::string(key.text));
      if (key.variable != variable || hits(lines, find) * 2 <= lines.size()) continue;
      return access_log("nginx", fmt::format("nginx access log, ${} ({})", variable, key.text),
                        Unit::kS, find);
    }
    return nullptr;
  };
  // The time of the whole request first: it is what the client waits for. The server's time behind
  // nginx is the last resort.
  if (auto log = with_key(kRequestTime)) return log;
  if (hits(lines, last_time) * 2 > lines.size()) {
    const auto both =
        static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), two_times));
    if (both * 2 > lines.size()) {
      return fail(ErrorKind::kInvalid, "the lines end in two times: which one is it?",
                  "give the format: --format nginx:'… $request_time $upstream_response_time'");
    }
    return access_log("nginx", "nginx access log, $request_time (the last field)", Unit::kS,
                      last_time);
  }
  if (auto log = with_key(kUpstreamTime)) return log;
  return no_time();
}

std::string names_of(const Pattern& pattern) {
  std::string names;
  for (const std::string& name : pattern.variables()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

// The server's own format: its time, or the variable that was asked for.
Result<std::unique_ptr<LogFormat>> by_pattern(const ReadOptions& options, Dialect dialect,
                                              std::string_view format) {
  Result<Pattern> pattern = Pattern::parse(format, dialect);
  if (!pattern) return fail(pattern.error().in("--format"));
  const bool nginx = dialect == Dialect::kNginx;
  std::optional<std::size_t> index;
  for (const std::string_view name : {kRequestTime, kUpstreamTime, std::string_view("DURATION")}) {
    if (!index && options.column.empty()) index = pattern->index_of(name);
  }
  if (!options.column.empty()) {
    std::string_view wanted = options.column;
    if (nginx && wanted.starts_with('$')) wanted.remove_prefix(1);
    index = pattern->index_of(wanted);
  }
  if (!index) {
    return fail(ErrorKind::kInvalid,
                options.column.empty()
                    ? fmt::format("the format has no {}", nginx ? "$request_time" : "%DURATION%")
                    : fmt::format("the format has no {}", in_quotes(options.column)),
                fmt::format("its variables are {}; --column names the one with the latency",
                            names_of(*pattern)));
  }
  const std::string name = pattern->variables()[*index];
  return access_log(nginx ? "nginx" : "envoy",
                    fmt::format("{} access log, {}", nginx ? "nginx" : "Envoy",
                                nginx ? "$" + name : "%" + name + "%"),
                    nginx ? Unit::kS : Unit::kMs,
                    [pattern = std::move(*pattern), at = *index](std::string_view line) {
                      return pattern.find(line, at);
                    });
}

// With the durations of the default format, or of Istio's.
struct EnvoyFinder {
  Pattern usual = *Pattern::parse(kEnvoyDefault, Dialect::kEnvoy);
  Pattern istio = *Pattern::parse(kEnvoyIstio, Dialect::kEnvoy);
  std::size_t usual_at = *usual.index_of("DURATION");
  std::size_t usual_sent = *usual.index_of("SENT");
  std::size_t istio_at = *istio.index_of("DURATION");

  std::optional<std::string_view> operator()(std::string_view line) const {
    const std::optional<std::string_view> sent = usual.find(line, usual_sent);
    if (!sent) return std::nullopt;
    // Istio's format has three more fields before the numbers: a text stands where the usual format
    // has the bytes sent.
    const bool is_usual = std::all_of(sent->begin(), sent->end(), is_digit);
    return is_usual ? usual.find(line, usual_at) : istio.find(line, istio_at);
  }
};

std::unique_ptr<LogFormat> envoy_default() {
  return access_log("envoy", "Envoy access log, %DURATION%", Unit::kMs, EnvoyFinder());
}

}  // namespace

bool looks_like_envoy(std::string_view line) {
  static const EnvoyFinder find;
  const std::optional<std::string_view> found = find(line);
  return found && parse_value(*found, Unit::kMs).skip == Skip::kNone;
}

bool looks_like_access_log(std::string_view line) {
  // "[10/Oct/2000:13:55:36 -0700] \"", as every combined log has it.
  constexpr std::size_t kDate = 12;
  for (std::size_t at = line.find('['); at != std::string_view::npos; at = line.find('[', at + 1)) {
    const std::string_view date = line.substr(at + 1, kDate);
    if (date.size() == kDate && is_digit(date[0]) && date[2] == '/' && date[6] == '/' &&
        date[11] == ':') {
      return true;
    }
  }
  return std::any_of(kKeys.begin(), kKeys.end(), [line](const Key& key) {
    const std::optional<std::string_view> found = keyed(line, key.text);
    return found && is_nginx_time(*found);
  });
}

Result<std::unique_ptr<LogFormat>> make_access_log(const ReadOptions& options,
                                                   std::span<const std::string> first_lines) {
  const std::string_view format = options.format;
  const std::size_t colon = format.find(':');
  const bool envoy = format.starts_with("envoy");
  if (colon != std::string_view::npos) {
    return by_pattern(options, envoy ? Dialect::kEnvoy : Dialect::kNginx, format.substr(colon + 1));
  }
  if (!envoy) return guess_nginx(options, first_lines);
  if (!options.column.empty()) {
    return fail(ErrorKind::kInvalid, "--column needs to know the log's format",
                "give it: --format envoy:'[%START_TIME%] … %DURATION%'");
  }
  return envoy_default();
}

}  // namespace tailward::plan
