// CSV files: RFC 4180, and the separators that spreadsheets and databases write instead of commas.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "plan/formats.h"
#include "plan/lines.h"

namespace tailward::plan {
namespace {

// One field of a record, from `rest`, which it is taken from; false: there is none left. Quotes are
// taken off, "" within them is one.
bool next_field(std::string_view& rest, bool& any_left, char separator, std::string& field) {
  if (!any_left) return false;
  field.clear();
  if (rest.starts_with('"')) {
    rest.remove_prefix(1);
    while (!rest.empty()) {
      const std::size_t quote = std::min(rest.find('"'), rest.size());
      field += rest.substr(0, quote);
      rest.remove_prefix(std::min(quote + 1, rest.size()));
      if (!rest.starts_with('"')) break;
      field += '"';
      rest.remove_prefix(1);
    }
  }
  const std::size_t end = rest.find(separator);
  any_left = end != std::string_view::npos;
  field += rest.substr(0, end);
  rest.remove_prefix(any_left ? end + 1 : rest.size());
  return true;
}

std::vector<std::string> fields_of(std::string_view record, char separator) {
  std::vector<std::string> fields;
  std::string field;
  for (bool left = true; next_field(record, left, separator, field);) fields.push_back(field);
  return fields;
}

// Whether the line ends inside of a quoted field; `within`: it begins inside of one. A quote that
// does not begin a field is text.
bool ends_within_quotes(std::string_view line, char separator, bool within) {
  if (!within && line.find('"') == std::string_view::npos) return false;
  while (true) {
    if (!within && line.starts_with('"')) {
      within = true;
      line.remove_prefix(1);
    }
    while (within) {
      const std::size_t quote = line.find('"');
      if (quote == std::string_view::npos) return true;
      line.remove_prefix(quote + 1);
      within = line.starts_with('"');
      if (within) line.remove_prefix(1);
    }
    const std::size_t end = line.find(separator);
    if (end == std::string_view::npos) return false;
    line.remove_prefix(end + 1);
  }
}

bool is_number(std::string_view text) {
  return parse_value(text, Unit::kMs).skip != Skip::kNoNumber &&
         parse_value(text, Unit::kMs).skip != Skip::kNoValue;
}

// The separator that comes most often outside of quotes; a comma where none comes.
char separator_of(std::string_view line) {
  std::array<std::pair<char, std::size_t>, 3> counts{{{'\t', 0}, {';', 0}, {',', 0}}};
  bool within = false;
  for (const char c : line) {
    if (c == '"') within = !within;
    for (auto& [separator, count] : counts) count += !within && c == separator ? 1 : 0;
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->second > 0 ? most->first : ',';
}

struct Header {
  std::vector<std::string> names;  // empty: the first record is none
  std::size_t columns = 0;
};

Header header_of(std::string_view line, char separator) {
  Header header;
  header.names = fields_of(line, separator);
  header.columns = header.names.size();
  for (std::string& name : header.names) name = std::string(trimmed(name));
  if (std::any_of(header.names.begin(), header.names.end(), is_number)) header.names.clear();
  return header;
}

// "latency_us", "duration (ms)", "time.ns", "elapsedMs": the unit that a column's name ends in.
std::optional<Unit> unit_in(std::string_view name) {
  while (name.ends_with(')') || name.ends_with(']')) name.remove_suffix(1);
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  struct Word {
    std::string_view text;
    Unit unit;
  };
  // "milliseconds" before "seconds".
  static constexpr std::array<Word, 12> kWords{{{"milliseconds", Unit::kMs},
                                                {"millis", Unit::kMs},
                                                {"msec", Unit::kMs},
                                                {"microseconds", Unit::kUs},
                                                {"micros", Unit::kUs},
                                                {"usec", Unit::kUs},
                                                {"nanoseconds", Unit::kNs},
                                                {"nanos", Unit::kNs},
                                                {"nsec", Unit::kNs},
                                                {"seconds", Unit::kS},
                                                {"secs", Unit::kS},
                                                {"sec", Unit::kS}}};
  for (const Word& word : kWords) {
    if (lower.ends_with(word.text)) return word.unit;
  }
  if (name.ends_with("Ms")) return Unit::kMs;
  if (name.ends_with("Us")) return Unit::kUs;
  if (name.ends_with("Ns")) return Unit::kNs;
  const std::size_t end = name.find_last_of(" _-.([/");
  return end == std::string_view::npos ? std::nullopt : parse_unit(name.substr(end + 1));
}

std::string list_of(const Header& header) {
  if (header.names.empty()) return fmt::format("1 to {}", header.columns);
  constexpr std::size_t kShown = 30;
  std::string list;
  for (std::size_t at = 0; at < header.names.size() && at < kShown; ++at) {
    list += (at > 0 ? ", " : "") + in_quotes(header.names[at]);
  }
  return list + (header.names.size() > kShown ? ", …" : "");
}

Result<std::size_t> column_in(const Header& header, const std::string& wanted) {
  const std::string there =
      header.names.empty() ? fmt::format("there is no header; the columns are {}", list_of(header))
                           : fmt::format("the columns are {}", list_of(header));
  if (wanted.empty()) {
    if (header.columns == 1) return std::size_t{0};
    return fail(ErrorKind::kInvalid,
                fmt::format("{} columns: which one has the latencies?", header.columns),
                fmt::format("give --column NAME or --column NUMBER; {}", there));
  }
  const auto named = std::find(header.names.begin(), header.names.end(), wanted);
  if (named != header.names.end()) return static_cast<std::size_t>(named - header.names.begin());
  std::size_t number = 0;
  const char* end = wanted.data() + wanted.size();
  const auto [rest, error] = std::from_chars(wanted.data(), end, number);
  if (error == std::errc{} && rest == end && number >= 1 && number <= header.columns) {
    return number - 1;
  }
  return fail(ErrorKind::kInvalid, fmt::format("there is no column {}", in_quotes(wanted)), there);
}

class Csv : public LogFormat {
 public:
  Csv(char separator, std::size_t column, bool header)
      : separator_(separator), column_(column), header_left_(header) {}

  Result<void> take(std::string_view line, std::uint64_t number, Recorder& into) override {
    const bool was_open = !open_.empty();
    const bool is_open = ends_within_quotes(line, separator_, was_open);
    if (!was_open && !is_open) return take_record(line, number, into);
    // Within quotes, a line's end is part of the value.
    if (!was_open) open_since_ = number;
    open_ += line;
    if (is_open) {
      open_ += '\n';
      return open_.size() > kLineMax ? end() : Result<void>();
    }
    const std::string record = std::exchange(open_, {});
    return take_record(record, open_since_, into);
  }
  Result<void> end() override {
    if (open_.empty()) return {};
    return fail(ErrorKind::kInvalid,
                fmt::format("the quotes that line {} opens are never closed", open_since_),
                "is this CSV? --format says what it is");
  }

 private:
  Result<void> take_record(std::string_view record, std::uint64_t number, Recorder& into) {
    if (std::exchange(header_left_, false) || trimmed(record).empty()) return {};
    bool left = true;
    for (std::size_t at = 0; at <= column_; ++at) {
      // The fields before are only passed over; most have no quotes.
      if (at < column_ && !record.starts_with('"')) {
        const std::size_t end = record.find(separator_);
        left = end != std::string_view::npos;
        record.remove_prefix(left ? end + 1 : record.size());
      } else {
        next_field(record, left, separator_, field_);
      }
      if (!left && at < column_) {
        into.skip(Skip::kNoColumn, number);
        return {};
      }
    }
    return into.text(field_, number);
  }

  char separator_;
  std::size_t column_;
  bool header_left_;
  std::string field_;
  std::string open_;  // a record whose quotes are not closed yet
  std::uint64_t open_since_ = 0;
};

}  // namespace

bool looks_like_csv(std::span<const std::string> first_lines) {
  if (first_lines.empty()) return false;
  const std::string& first = first_lines.front();
  const char separator = separator_of(first);
  const std::size_t columns = fields_of(first, separator).size();
  if (columns == 1) {
    return first_lines.size() > 1 && !is_number(first) && is_number(first_lines[1]);
  }
  std::size_t same = 0;
  for (const std::string& line : first_lines) {
    same += fields_of(line, separator).size() == columns ? 1 : 0;
  }
  return same * 2 > first_lines.size();
}

Result<std::unique_ptr<LogFormat>> make_csv(const ReadOptions& options,
                                            std::span<const std::string> first_lines) {
  const std::string& first = first_lines.front();
  const char separator = separator_of(first);
  const Header header = header_of(first, separator);
  const Result<std::size_t> column = column_in(header, options.column);
  if (!column) return fail(column.error());
  auto csv = std::make_unique<Csv>(separator, *column, !header.names.empty());
  csv->name = "csv";
  const std::string name =
      header.names.empty() ? "" : fmt::format(" {}", in_quotes(header.names[*column]));
  csv->understood = fmt::format("CSV{}, column {}{}",
                                header.names.empty() ? " without a header" : "", *column + 1, name);
  if (!header.names.empty()) csv->unit = unit_in(header.names[*column]).value_or(Unit::kMs);
  return csv;
}

}  // namespace tailward::plan
