// What a verb has to say, as plain values. One Report is rendered to a terminal (terminal.h) and to
// a self-contained HTML file (html.h); JSON is assembled by the verb itself, in the contract's
// words, on top of the common envelope (json.h).
//
// Plain data: copy it, fill it from one thread. Nothing here fails, and nothing is escaped here:
// texts may hold any bytes, and each renderer makes them safe for its medium. Texts are UTF-8;
// bytes that are not come out as U+FFFD.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "findings/statement.h"

namespace tailward::report {

// ---- tables -----------------------------------------------------------------------------------

enum class Emphasis { kNone, kGood, kBad, kMuted };

struct Cell {
  std::string text;              // as people read it, without the column's unit
  std::optional<double> number;  // the value behind the text, where there is one
  Emphasis emphasis = Emphasis::kNone;
};

enum class Better { kLower, kHigher, kNeither };

Cell text_cell(std::string text, Emphasis emphasis = Emphasis::kNone);
// 1234.5 with one decimal: "1,234.5". A value that is not finite: "–".
Cell number_cell(double value, int decimals = 1, Emphasis emphasis = Emphasis::kNone);
Cell count_cell(std::uint64_t count, Emphasis emphasis = Emphasis::kNone);
// 0.147: "14.7 %"
Cell share_cell(double share, Emphasis emphasis = Emphasis::kNone);
// The change from `base` to `value`: "+182 %", or "×12.5" from a tenfold on; "–" when base is not
// above 0. Good or bad when it is at least `notable` (a share) in that direction.
Cell change_cell(double value, double base, Better better, double notable = 0.05);
// "387.2 (371–402)": a figure with its interval.
Cell interval_cell(double value, double low, double high, int decimals = 1,
                   Emphasis emphasis = Emphasis::kNone);

enum class Align { kLeft, kRight };

struct Column {
  std::string header;
  Align align = Align::kRight;
  std::string unit = {};  // "ms"; shown beside the header
  // A table too wide for the terminal first wraps headers and left-aligned cells; then it drops the
  // columns of the highest priority number (and says so). 0 is never dropped.
  int priority = 0;
};

struct Table {
  std::string title;  // may be empty, as every title below
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // a short row is filled with empty cells
  std::vector<std::string> notes = {};
};

// ---- statements -------------------------------------------------------------------------------

// findings::Statement is a block of its own: its layer, its sentence and its evidence.

struct Check {
  std::string name;  // the claim: "hedging alone worsens P50"
  bool ok = false;
  std::string value;                  // "×3.1"
  std::string bound;                  // "> 1.5"
  std::optional<double> number = {};  // the value for JSON; the text stands in when absent
};

struct Checks {
  std::string title;
  std::vector<Check> checks;
};

enum class NoteKind {
  kNote,
  kWarning,
  kLost,     // events, samples or packets that were not seen: figures may be too low
  kPartial,  // the measurement ended early
};

struct Note {
  NoteKind kind = NoteKind::kNote;
  std::string text;
};

// ---- charts -----------------------------------------------------------------------------------

struct QuantilePoint {
  double quantile = 0;  // 0 ≤ quantile < 1; a point at 1 or beyond is left out
  double ms = 0;        // NaN: no value, a gap
};

enum class Line { kSolid, kDashed, kMarkers };  // kMarkers: dots only, for published figures

struct CurveSeries {
  std::string name;
  std::vector<QuantilePoint> points;  // by rising quantile
  Line line = Line::kSolid;
};

// Latency by percentile on a tail scale: x = log10(1/(1 − quantile)), so that P90, P99, P99.9 are
// equally far apart.
struct CurveChart {
  std::string title;
  std::vector<CurveSeries> series;
  bool log_y = false;        // how it opens; the page has a switch
  bool in_terminal = false;  // as a table of P50 … P99.99; off, as there mostly is a table already
};

// Points for a series, evenly spaced on the tail scale, from P1 up to the last quantile that
// `samples` samples can tell (1 − 1/samples), at most P99.999. `quantile_ms` is asked for each in
// rising order.
std::vector<QuantilePoint> tail_points(std::uint64_t samples,
                                       const std::function<double(double)>& quantile_ms);

struct TimePointValue {
  double seconds = 0;
  double value = 0;  // NaN: no value, a gap
};

enum class Side { kLeft, kRight };

struct TimeSeries {
  std::string name;
  std::string unit;                    // "%", "ms/s"; those of one side should share it
  std::vector<TimePointValue> points;  // by rising time
  Side side = Side::kLeft;
  Line line = Line::kSolid;
};

struct EventMark {
  double seconds = 0;
  std::string label;
};

struct LevelMark {  // a horizontal line: a threshold
  double value = 0;
  std::string label;
  Side side = Side::kLeft;
};

struct TimelineChart {
  std::string title;
  std::vector<TimeSeries> series;
  std::vector<EventMark> events = {};
  std::vector<LevelMark> levels = {};
  bool in_terminal = true;  // one sparkline per series
};

// Who sent what to whom and when, as a ladder of two ends: packets, mostly. Rows follow each other
// in order of time, not to scale, so that 20 µs and 40 ms are both readable; long waits are marked.
struct SequenceArrow {
  double seconds = 0;  // from any origin, near enough for a double to tell microseconds
  bool from_left = true;
  std::string label;
  Emphasis emphasis = Emphasis::kNone;
  std::uint64_t packet = 0;  // its number in the capture; 0: it has none
};

struct SequenceGap {  // a wait that matters, and why
  double from_s = 0;
  double until_s = 0;
  std::string label;
};

struct SequenceChart {
  std::string title;
  std::string left;  // names of the two ends
  std::string right;
  std::vector<SequenceArrow> arrows;  // in any order
  std::vector<SequenceGap> gaps = {};
  bool in_terminal = true;
};

// ---- the report -------------------------------------------------------------------------------

struct Machine {
  unsigned cores = 0;  // 0: not known
  std::string kernel;  // "Linux 6.1.0"
};

struct RunInfo {
  std::string command;  // the command line
  std::string version;
  std::uint64_t seed = 0;
  std::string started;  // ISO 8601, given by the caller
  std::optional<Duration> duration = {};
  Machine machine = {};
  bool partial = false;  // ended early: every renderer says so by itself, on top
};

using Block = std::variant<Table, findings::Statement, Checks, CurveChart, TimelineChart,
                           SequenceChart, Note>;

struct Report {
  std::string title;
  std::string summary;  // one paragraph
  RunInfo run;
  std::vector<Block> blocks;

  void add(Block block) { blocks.push_back(std::move(block)); }
};

// Said by every renderer when run.partial is set.
inline constexpr std::string_view kPartialText =
    "The measurement was ended early; the figures are those collected until then.";

// The facts of a run as short phrases for one line: "seed 42", "took 12.3 s", …; unknown ones left
// out.
std::vector<std::string> facts_of(const RunInfo& run);

// The figures of a chart as a table, for media that cannot draw.
Table figures_of(const CurveChart& chart);
Table figures_of(const TimelineChart& chart);

}  // namespace tailward::report
