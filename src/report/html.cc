#include "report/html.h"

#include <fmt/format.h>

#include <cmath>

#include "report/assets.h"
#include "report/json.h"
#include "report/sequence_svg.h"
#include "report/text.h"

namespace tailward::report {
namespace {

// A style sheet or script that comes with a page may use nothing but what is in the page.
constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

std::string_view name_of(Line line) {
  switch (line) {
    case Line::kDashed:
      return "dashed";
    case Line::kMarkers:
      return "markers";
    case Line::kSolid:
      break;
  }
  return "solid";
}

std::string_view name_of(Side side) { return side == Side::kLeft ? "left" : "right"; }

std::string class_attribute(std::string_view first, std::string_view second) {
  const std::string classes =
      std::string(first) + (first.empty() || second.empty() ? "" : " ") + std::string(second);
  return classes.empty() ? "" : " class=\"" + classes + "\"";
}

Json series_data(const CurveSeries& series) {
  Json quantiles = Json::array();
  Json values = Json::array();
  for (const QuantilePoint& point : series.points) {
    if (!(point.quantile >= 0 && point.quantile < 1)) continue;
    quantiles.push_back(point.quantile);
    values.push_back(point.ms);
  }
  return {{"name", printable(series.name)},
          {"line", name_of(series.line)},
          {"q", std::move(quantiles)},
          {"ms", std::move(values)}};
}

Json series_data(const TimeSeries& series) {
  Json seconds = Json::array();
  Json values = Json::array();
  for (const TimePointValue& point : series.points) {
    if (!std::isfinite(point.seconds)) continue;
    seconds.push_back(point.seconds);
    values.push_back(point.value);
  }
  return {{"name", printable(series.name)}, {"unit", printable(series.unit)},
          {"side", name_of(series.side)},   {"line", name_of(series.line)},
          {"s", std::move(seconds)},        {"v", std::move(values)}};
}

Json chart_data(const CurveChart& chart) {
  Json series = Json::array();
  for (const CurveSeries& one : chart.series) series.push_back(series_data(one));
  return {{"kind", "curve"}, {"log_y", chart.log_y}, {"series", std::move(series)}};
}

Json chart_data(const TimelineChart& chart) {
  Json series = Json::array();
  for (const TimeSeries& one : chart.series) series.push_back(series_data(one));
  Json events = Json::array();
  for (const EventMark& event : chart.events) {
    events.push_back(Json::array({event.seconds, printable(event.label)}));
  }
  Json levels = Json::array();
  for (const LevelMark& level : chart.levels) {
    levels.push_back(
        {{"value", level.value}, {"label", printable(level.label)}, {"side", name_of(level.side)}});
  }
  return {{"kind", "timeline"},
          {"series", std::move(series)},
          {"events", std::move(events)},
          {"levels", std::move(levels)}};
}

class Page {
 public:
  void open(const Report& report);
  void put(const Table& table);
  void put(const findings::Statement& statement);
  void put(const Checks& checks);
  void put(const Note& note);
  void put(const CurveChart& chart) { put_chart(chart); }
  void put(const TimelineChart& chart) { put_chart(chart); }
  void put(const SequenceChart& chart);
  void close(const RunInfo& run);
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void heading(std::string_view title) {
    if (!title.empty()) out_ += "<h2>" + html_escaped(title) + "</h2>\n";
  }
  void grid(const Table& table);
  void notes(const Table& table);
  void script(std::string_view text) {
    out_ += "<script>\n";
    out_ += text;
    out_ += "\n</script>\n";
  }
  template <class Chart>
  void put_chart(const Chart& chart);

  std::string out_;
  Json charts_ = Json::array();
};

void Page::open(const Report& report) {
  bool charts = false;
  for (const Block& block : report.blocks) {
    charts = charts || std::holds_alternative<CurveChart>(block) ||
             std::holds_alternative<TimelineChart>(block);
  }
  out_ += fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"tailward {}\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n",
      kPolicy, html_escaped(report.run.version), html_escaped(report.title));
  if (charts) out_ += uplot_css();
  out_ += report_css();
  out_ += "</style>\n</head>\n<body>\n<main>\n<header>\n";
  if (!report.title.empty()) out_ += "<h1>" + html_escaped(report.title) + "</h1>\n";
  if (!report.summary.empty()) {
    out_ += "<p class=\"summary\">" + html_escaped(report.summary) + "</p>\n";
  }
  out_ += "</header>\n";
  if (report.run.partial) put(Note{NoteKind::kPartial, std::string(kPartialText)});
}

void Page::grid(const Table& table) {
  out_ += "<div class=\"scroll\"><table class=\"data\">\n<thead><tr>";
  const auto align = [&](std::size_t at) {
    return table.columns[at].align == Align::kLeft ? std::string_view("left") : "";
  };
  for (std::size_t at = 0; at < table.columns.size(); ++at) {
    const Column& column = table.columns[at];
    out_ += fmt::format("<th scope=\"col\"{}>{}", class_attribute(align(at), ""),
                        html_escaped(column.header));
    if (!column.unit.empty()) {
      out_ += fmt::format(" <span class=\"unit\">{}</span>", html_escaped(column.unit));
    }
    out_ += "</th>";
  }
  out_ += "</tr></thead>\n<tbody>\n";
  for (const std::vector<Cell>& row : table.rows) {
    out_ += "<tr>";
    for (std::size_t at = 0; at < table.columns.size(); ++at) {
      const Cell cell = at < row.size() ? row[at] : Cell{};
      out_ += fmt::format("<td{}>{}</td>", class_attribute(align(at), class_of(cell.emphasis)),
                          html_escaped(cell.text));
    }
    out_ += "</tr>\n";
  }
  out_ += "</tbody></table></div>\n";
}

void Page::notes(const Table& table) {
  for (const std::string& note : table.notes) {
    out_ += "<p class=\"table-notes\">" + html_escaped(note) + "</p>\n";
  }
}

void Page::put(const Table& table) {
  out_ += "<section>\n";
  heading(table.title);
  grid(table);
  notes(table);
  out_ += "</section>\n";
}

void Page::put(const findings::Statement& statement) {
  const std::string_view layer = to_string(statement.layer);
  out_ += fmt::format(
      "<section class=\"verdict is-{}\">\n<div class=\"layer\">{}</div>\n"
      "<p class=\"sentence\">{}</p>\n",
      layer, layer, html_escaped(statement.sentence));
  if (!statement.evidence.empty()) {
    out_ += "<ul>\n";
    for (const findings::Evidence& evidence : statement.evidence) {
      out_ += "<li>" + html_escaped(to_line(evidence)) + "</li>\n";
    }
    out_ += "</ul>\n";
  }
  out_ += "</section>\n";
}

void Page::put(const Checks& checks) {
  out_ += "<section>\n";
  heading(checks.title);
  out_ += "<div class=\"scroll\"><table class=\"checks\"><tbody>\n";
  std::size_t held = 0;
  for (const Check& check : checks.checks) {
    held += check.ok ? 1 : 0;
    const std::string_view shade = check.ok ? "good" : "bad";
    out_ += fmt::format(
        "<tr><td class=\"mark {}\" title=\"{}\">{}</td><td class=\"left\">{}</td>"
        "<td class=\"figure{}\">{}</td><td class=\"figure left muted\">{}</td></tr>\n",
        shade, check.ok ? "holds" : "fails", check.ok ? "✓" : "✗", html_escaped(check.name),
        check.ok ? "" : " bad", html_escaped(check.value), html_escaped(check.bound));
  }
  out_ += fmt::format(
      "</tbody></table></div>\n<p class=\"table-notes\">{} of {} hold</p>\n</section>\n", held,
      checks.checks.size());
}

void Page::put(const Note& note) {
  const std::string_view label = note.kind == NoteKind::kWarning   ? "Warning"
                                 : note.kind == NoteKind::kLost    ? "Lost"
                                 : note.kind == NoteKind::kPartial ? "Partial"
                                                                   : "";
  out_ += fmt::format("<section class=\"note{}\"><p>", label.empty() ? "" : " alert");
  if (!label.empty()) out_ += fmt::format("<b>{}:</b> ", label);
  out_ += html_escaped(note.text) + "</p></section>\n";
}

template <class Chart>
void Page::put_chart(const Chart& chart) {
  out_ += fmt::format(
      "<figure data-chart=\"{}\">\n<div class=\"chart-head\"><figcaption>{}</figcaption></div>\n"
      "<div class=\"plot\"></div>\n<details open><summary>Figures</summary>\n",
      charts_.size(), html_escaped(chart.title));
  const Table figures = figures_of(chart);
  grid(figures);
  notes(figures);
  out_ += "</details>\n</figure>\n";
  charts_.push_back(chart_data(chart));
}

void Page::put(const SequenceChart& chart) {
  out_ += "<figure class=\"sequence\">\n";
  if (!chart.title.empty()) {
    out_ += "<figcaption>" + html_escaped(chart.title) + "</figcaption>\n";
  }
  out_ += "<div class=\"scroll\">\n" + sequence_svg(chart) + "</div>\n</figure>\n";
}

void Page::close(const RunInfo& run) {
  out_ += "<footer><ul class=\"facts\">\n";
  for (const std::string& fact : facts_of(run)) out_ += "<li>" + html_escaped(fact) + "</li>\n";
  out_ += "</ul></footer>\n</main>\n";
  if (!charts_.empty()) {
    out_ += "<script type=\"application/json\" id=\"charts\">" + to_script_text(charts_) +
            "</script>\n";
    script(fmt::format("/*\nuPlot. {}\n*/\n{}", uplot_license(), uplot_js()));
    script(report_js());
  }
  out_ += "</body>\n</html>\n";
}

}  // namespace

std::string to_html(const Report& report) {
  Page page;
  page.open(report);
  for (const Block& block : report.blocks) {
    std::visit([&](const auto& value) { page.put(value); }, block);
  }
  page.close(report.run);
  return page.take();
}

}  // namespace tailward::report
