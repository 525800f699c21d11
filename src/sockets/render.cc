#include "sockets/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/units.h"

namespace tailward::sockets {
namespace {

using diag::bytes_text;
using report::Align;
using report::Cell;
using report::Emphasis;
using report::text_cell;

// More connections than this are shown by peer, unless --all asks for each.
// Thirty rows and their headings still fit on one screen of a laptop.
constexpr std::size_t kEachMax = 30;
constexpr std::size_t kNamedMax = 6;  // sockets that a remark names

// "1 listener", "2 listeners"
std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

std::string ms_text(std::uint32_t us) {
  // Two decimals below 10 ms: there a difference of 0.01 ms is one that a local network shows.
  return fmt::format("{:.{}f}", us / 1000.0, us < 10'000 ? 2 : 1);
}

Cell ms_cell(std::optional<std::uint32_t> us) {
  // 0: not one sample was taken.
  return us.value_or(0) > 0 ? Cell{ms_text(*us), *us / 1000.0} : text_cell("–", Emphasis::kMuted);
}

Cell bytes_cell(std::optional<std::uint64_t> bytes) {
  if (!bytes) return text_cell("–", Emphasis::kMuted);
  return {bytes_text(static_cast<double>(*bytes)), static_cast<double>(*bytes)};
}

Cell rate_cell(double per_second) {
  if (per_second <= 0) return text_cell("–", Emphasis::kMuted);
  return {bytes_text(per_second), per_second};
}

// Which of the process's services a peer has called, unless there is but one.
std::string service_text(const tcp::SocketFacts& facts, const Directions& directions) {
  return directions.services() == 1 ? "" : fmt::format(" on :{}", facts.local.port);
}

std::string peer_text(const tcp::SocketFacts& facts, const Directions& directions) {
  if (facts.remote.port == 0 && facts.local.port == 0) return "not connected";
  if (facts.remote.port == 0) return fmt::format("not connected, on :{}", facts.local.port);
  if (directions.inbound(facts)) {
    return fmt::format("from {}{}", tcp::to_string(facts.remote), service_text(facts, directions));
  }
  return fmt::format("to {}", tcp::to_string(facts.remote));
}

std::string buffers_text(const tcp::SocketOptions& options) {
  std::string text;
  // Only what the application has set: an autotuned size changes by itself and is no option.
  if (options.sndbuf_locked.value_or(false)) {
    text += fmt::format(" snd={}", bytes_text(options.sndbuf.value_or(0)));
  }
  if (options.rcvbuf_locked.value_or(false)) {
    text += fmt::format(" rcv={}", bytes_text(options.rcvbuf.value_or(0)));
  }
  return text;
}

// What is set, in words short enough for a column.
std::string options_text(const tcp::SocketFacts& facts) {
  const tcp::SocketOptions& options = facts.options;
  // Without a duplicate of the descriptor no option can be read, not even this one.
  if (!options.nodelay) return "not readable";
  std::string text = *options.nodelay ? " nodelay" : " nagle";
  // Nagle is every socket's default, and a listener sends nothing. What it has set is inherited by
  // its connections, so an explicit nodelay is worth the word.
  if (facts.state == tcp::TcpState::kListen) text = *options.nodelay ? " nodelay" : "";
  if (options.cork.value_or(false)) text += " cork";
  if (options.keepalive.value_or(false)) {
    text += fmt::format(" keepalive={}s", options.keepidle_s.value_or(0));
  }
  text += buffers_text(options);
  if (options.linger_s.value_or(-1) >= 0) text += fmt::format(" linger={}s", *options.linger_s);
  if (options.user_timeout_ms.value_or(0) > 0) {
    text += fmt::format(" timeout={}ms", *options.user_timeout_ms);
  }
  if (options.reuseport.value_or(false)) text += " reuseport";
  if (options.defer_accept_s.value_or(0) > 0) text += " defer-accept";
  if (facts.state == tcp::TcpState::kListen) {
    if (options.reuseaddr.value_or(false)) text += " reuseaddr";
    if (options.fastopen_queue.value_or(0) > 0) text += " fastopen";
    if (options.v6only.value_or(false)) text += " v6only";
  }
  return text.empty() ? "–" : text.substr(1);
}

std::string fd_text(const tcp::SocketFacts& facts, bool with_pid) {
  if (facts.fd < 0) return "?";
  return with_pid ? fmt::format("{}/{}", facts.pid, facts.fd) : fmt::format("{}", facts.fd);
}

// What all tables need to know of the snapshot.
struct TableContext {
  const Snapshot& snapshot;
  View view;
  Directions directions{snapshot};
  bool several = snapshot.processes.size() > 1;
  std::vector<const Socket*> listeners = {};
  std::vector<const Socket*> connections = {};  // one for each socket, however many share it
  std::size_t shared = 0;

  TableContext(const Snapshot& from, const View& how) : snapshot(from), view(how) {
    std::map<std::uint32_t, bool> seen;
    for (const Socket& socket : snapshot.sockets) {
      // A socket without an inode belongs to nobody (TIME-WAIT): two of them are two sockets.
      if (socket.facts.inode != 0 && !seen.emplace(socket.facts.inode, true).second) {
        ++shared;
      } else {
        (is_listener(socket) ? listeners : connections).push_back(&socket);
      }
    }
  }
  [[nodiscard]] report::Column fd_column() const {
    return {several ? "pid/fd" : "fd", several ? Align::kLeft : Align::kRight};
  }
  [[nodiscard]] Cell fd_cell(const Socket& socket) const {
    return text_cell(fd_text(socket.facts, several));
  }
};

Emphasis emphasis_of(const Socket& socket) {
  if (socket.remarks.empty()) return Emphasis::kNone;
  // The remarks are sorted, worst first. A note alone is no reason for colour.
  return socket.remarks.front().severity == diag::Severity::kNote ? Emphasis::kNone
                                                                  : Emphasis::kBad;
}

std::string codes_of(const Socket& socket) {
  std::string text;
  for (const diag::SocketRemark& remark : socket.remarks) {
    if (!text.empty()) text += ' ';
    text += remark.code;
  }
  return text;
}

void drop_column(report::Table& table, std::size_t column) {
  const auto at = static_cast<std::ptrdiff_t>(column);
  table.columns.erase(table.columns.begin() + at);
  for (std::vector<Cell>& row : table.rows) row.erase(row.begin() + at);
}

bool no_remarks(const std::vector<const Socket*>& sockets) {
  return std::all_of(sockets.begin(), sockets.end(),
                     [](const Socket* one) { return one->remarks.empty(); });
}

// ---- tables -----------------------------------------------------------------------------------

void add_listeners(report::Report& report, const TableContext& context) {
  if (context.listeners.empty()) return;
  report::Table table;
  table.title = "Listeners";
  table.columns = {context.fd_column(), {"address", Align::kLeft}, {"waiting"},
                   {"backlog"},         {"options", Align::kLeft}, {"remarks", Align::kLeft}};
  // The accept queue of a listener stands in the fields of its data queues: its length in
  // recv_queue, its limit in send_queue (sock_diag(7)).
  const std::size_t shown =
      context.view.all ? context.listeners.size() : std::min(context.listeners.size(), kEachMax);
  for (std::size_t at = 0; at < shown; ++at) {
    const Socket& socket = *context.listeners[at];
    table.rows.push_back(
        {context.fd_cell(socket), text_cell(tcp::to_string(socket.facts.local)),
         report::count_cell(socket.facts.recv_queue), report::count_cell(socket.facts.send_queue),
         text_cell(options_text(socket.facts)), text_cell(codes_of(socket), emphasis_of(socket))});
  }
  if (shown < context.listeners.size()) {
    table.notes.push_back(
        fmt::format("{} more: --all shows them", format_count(context.listeners.size() - shown)));
  }
  if (no_remarks(context.listeners)) drop_column(table, 5);
  report.add(std::move(table));
}

report::Table connection_table(const TableContext& context,
                               const std::vector<const Socket*>& sockets) {
  report::Table table;
  table.columns = {context.fd_column(),
                   {"peer", Align::kLeft},
                   {"state", Align::kLeft, "", 3},
                   {"RTT", Align::kRight, "ms"},
                   {"sent", Align::kRight, "", 2},
                   {"received", Align::kRight, "", 2},
                   {"options", Align::kLeft},
                   {"remarks", Align::kLeft}};
  const bool all_established = std::all_of(
      sockets.begin(), sockets.end(),
      [](const Socket* socket) { return socket->facts.state == tcp::TcpState::kEstablished; });
  for (const Socket* socket : sockets) {
    const tcp::TcpInfo& tcp = socket->facts.tcp;
    table.rows.push_back({context.fd_cell(*socket),
                          text_cell(peer_text(socket->facts, context.directions)),
                          text_cell(std::string(tcp::to_string(socket->facts.state))),
                          ms_cell(tcp.rtt_us), bytes_cell(tcp.bytes_sent),
                          bytes_cell(tcp.bytes_received), text_cell(options_text(socket->facts)),
                          text_cell(codes_of(*socket), emphasis_of(*socket))});
  }
  // A column that says the same, or nothing, everywhere is none.
  if (no_remarks(sockets)) drop_column(table, 7);
  if (all_established) drop_column(table, 2);
  return table;
}

struct PeerGroup {
  std::uint64_t count = 0, remarks = 0, sent = 0, received = 0;
  std::map<std::string_view, std::uint64_t> states;
  std::map<std::string, std::uint64_t> options;
  std::vector<std::uint32_t> rtts;
};

// "ESTABLISHED", or "CLOSE-WAIT 12, ESTABLISHED 3".
template <class Key>
std::string mix_text(const std::map<Key, std::uint64_t>& counts) {
  // A mix of one needs no number: the row's own count says it.
  if (counts.size() == 1) return std::string(counts.begin()->first);
  std::vector<std::pair<std::uint64_t, std::string>> order;
  for (const auto& [name, count] : counts) order.emplace_back(count, std::string(name));
  std::sort(order.rbegin(), order.rend());
  std::string text;
  for (const auto& [count, name] : order) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, format_count(count));
  }
  return text;
}

std::optional<std::uint32_t> quantile(std::vector<std::uint32_t>& values, double q) {
  if (values.empty()) return std::nullopt;
  // Of integers, without interpolation: the figure is one that some connection has.
  const auto at = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

// One row for each peer and service: "from 10.0.0.5 on :8080", "to 10.0.0.9:5432".
std::map<std::string, PeerGroup> groups_of(const TableContext& context) {
  std::map<std::string, PeerGroup> groups;
  for (const Socket* socket : context.connections) {
    const tcp::SocketFacts& facts = socket->facts;
    std::string key = peer_text(facts, context.directions);
    // Clients use a new port for each connection, so they are grouped by address. A server's port
    // is part of what it is.
    if (facts.remote.port != 0 && context.directions.inbound(facts)) {
      key = fmt::format("from {}{}", tcp::to_string(facts.remote.address),
                        service_text(facts, context.directions));
    }
    PeerGroup& group = groups[key];
    ++group.count;
    group.remarks += socket->remarks.empty() ? 0 : 1;
    group.sent += facts.tcp.bytes_sent.value_or(0);
    group.received += facts.tcp.bytes_received.value_or(0);
    ++group.states[tcp::to_string(facts.state)];
    ++group.options[options_text(facts)];
    if (facts.tcp.rtt_us) group.rtts.push_back(*facts.tcp.rtt_us);
  }
  return groups;
}

report::Table group_table(const TableContext& context) {
  std::map<std::string, PeerGroup> groups = groups_of(context);
  std::vector<std::pair<const std::string, PeerGroup>*> order;
  for (auto& group : groups) order.push_back(&group);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->second.count > b->second.count; });
  report::Table table;
  table.title = "Connections by peer";
  table.columns = {{"peer", Align::kLeft},
                   {"number"},
                   {"with remarks"},
                   {"RTT P50", Align::kRight, "ms"},
                   {"RTT max", Align::kRight, "ms", 1},
                   {"sent", Align::kRight, "", 2},
                   {"received", Align::kRight, "", 2},
                   {"state", Align::kLeft, "", 3},
                   {"options", Align::kLeft}};
  const std::size_t shown = std::min(order.size(), context.view.top);
  for (std::size_t at = 0; at < shown; ++at) {
    PeerGroup& group = order[at]->second;
    table.rows.push_back({text_cell(order[at]->first), report::count_cell(group.count),
                          report::count_cell(group.remarks), ms_cell(quantile(group.rtts, 0.5)),
                          ms_cell(quantile(group.rtts, 1)), bytes_cell(group.sent),
                          bytes_cell(group.received), text_cell(mix_text(group.states)),
                          text_cell(mix_text(group.options))});
  }
  std::uint64_t rest = 0;
  for (std::size_t at = shown; at < order.size(); ++at) rest += order[at]->second.count;
  if (rest > 0) {
    table.notes.push_back(fmt::format("{} more with {}: --top N shows more",
                                      counted(order.size() - shown, "peer"),
                                      counted(rest, "connection")));
  }
  return table;
}

// With the gravest remarks first, then those that have moved the most.
std::vector<const Socket*> by_interest(std::vector<const Socket*> sockets) {
  const auto rank = [](const Socket* socket) {
    // Without remarks below the least severe remark, which is 0.
    const int severity =
        socket->remarks.empty() ? -1 : static_cast<int>(socket->remarks.front().severity);
    return std::tuple(severity, socket->facts.tcp.bytes_sent.value_or(0) +
                                    socket->facts.tcp.bytes_received.value_or(0));
  };
  std::stable_sort(sockets.begin(), sockets.end(),
                   [&rank](const Socket* a, const Socket* b) { return rank(a) > rank(b); });
  return sockets;
}

void add_connections(report::Report& report, const TableContext& context) {
  const std::vector<const Socket*>& all = context.connections;
  if (all.empty()) return;
  if (context.view.all || all.size() <= kEachMax) {
    report::Table table = connection_table(context, all);
    table.title = "Connections";
    report.add(std::move(table));
    return;
  }
  report.add(group_table(context));
  std::vector<const Socket*> first = by_interest(all);
  first.resize(std::min(first.size(), context.view.top));
  report::Table table = connection_table(context, first);
  table.title = "Connections with remarks first, then the busiest";
  table.notes.push_back(fmt::format("{} of {}: --all shows every one", format_count(first.size()),
                                    format_count(all.size())));
  report.add(std::move(table));
}

// ---- remarks and notes ------------------------------------------------------------------------

struct Said {
  const diag::SocketRemark* worst = nullptr;
  std::vector<const Socket*> sockets;
};

void add_remarks(report::Report& report, const TableContext& context) {
  std::map<std::string_view, Said> by_code;
  for (const auto* sockets : {&context.listeners, &context.connections}) {
    for (const Socket* socket : *sockets) {
      for (const diag::SocketRemark& remark : socket->remarks) {
        Said& said = by_code[remark.code];
        if (said.worst == nullptr || remark.severity > said.worst->severity) {
          said.worst = &remark;
          said.sockets.insert(said.sockets.begin(), socket);  // the one that the sentence is of
        } else {
          said.sockets.push_back(socket);
        }
      }
    }
  }
  std::vector<std::pair<std::string_view, Said>> order(by_code.begin(), by_code.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second.worst->severity > b.second.worst->severity;
  });
  for (const auto& [code, said] : order) {
    std::string names;
    for (std::size_t at = 0; at < std::min(said.sockets.size(), kNamedMax); ++at) {
      names += (at > 0 ? ", " : "") + fd_text(said.sockets[at]->facts, context.several);
    }
    if (said.sockets.size() > kNamedMax) names += ", …";
    const std::string number =
        said.sockets.size() > 1
            ? fmt::format("{}, of the first: ", counted(said.sockets.size(), "socket"))
            : "";
    report.add(
        report::Note{said.worst->severity == diag::Severity::kNote ? report::NoteKind::kNote
                                                                   : report::NoteKind::kWarning,
                     fmt::format("{} ({} {}): {}{}.", code, context.several ? "pid/fd" : "fd",
                                 names, number, said.worst->sentence)});
  }
}

void add_gaps(report::Report& report, const Snapshot& snapshot) {
  if (snapshot.denied > 0 && snapshot.why_denied) {
    report.add(report::Note{report::NoteKind::kLost,
                            fmt::format("the options of {} could not be read: {}. {}.",
                                        counted(snapshot.denied, "socket"),
                                        snapshot.why_denied->message, snapshot.why_denied->hint)});
  }
  if (snapshot.vanished > 0) {
    report.add(report::Note{
        report::NoteKind::kLost,
        fmt::format("{} closed while they were looked at.", counted(snapshot.vanished, "socket"))});
  }
  if (snapshot.unix_sockets + snapshot.other_sockets > 0) {
    report.add(report::Note{
        report::NoteKind::kNote,
        fmt::format("Not TCP and not shown: {} Unix, {} other sockets.",
                    format_count(snapshot.unix_sockets), format_count(snapshot.other_sockets))});
  }
}

std::string processes_text(const Snapshot& snapshot) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t at = 0; at < std::min(snapshot.processes.size(), kShown); ++at) {
    const ProcessInfo& process = snapshot.processes[at];
    text += fmt::format("{}{} (pid {}, {})", at > 0 ? ", " : "", process.name, process.pid,
                        tcp::to_string(process.runtime));
  }
  if (snapshot.processes.size() > kShown) {
    text += fmt::format(" and {} more", snapshot.processes.size() - kShown);
  }
  return text.empty() ? "a process that may not be looked into" : text;
}

std::string summary_of(const TableContext& context) {
  std::map<std::string_view, std::uint64_t> states;
  std::uint64_t inbound = 0;
  std::uint64_t remarked = 0;
  for (const Socket* socket : context.connections) {
    ++states[tcp::to_string(socket->facts.state)];
    inbound += context.directions.inbound(socket->facts) ? 1 : 0;
    remarked += socket->remarks.empty() ? 0 : 1;
  }
  for (const Socket* socket : context.listeners) remarked += socket->remarks.empty() ? 0 : 1;
  std::string text = fmt::format("{}: {}, {}", processes_text(context.snapshot),
                                 counted(context.listeners.size(), "listener"),
                                 counted(context.connections.size(), "connection"));
  if (!context.connections.empty()) {
    text += fmt::format(" ({} in, {} out; {})", format_count(inbound),
                        format_count(context.connections.size() - inbound), mix_text(states));
  }
  if (context.shared > 0) {
    text += fmt::format("; {} share them", counted(context.shared, "more descriptor"));
  }
  return text + (remarked > 0 ? fmt::format(". Remarks on {}.", counted(remarked, "socket"))
                              : ". Nothing to remark.");
}

// ---- activity ---------------------------------------------------------------------------------

// The order of the activity table. Bytes decide; segments without data only tell a connection that
// is probed from one that is silent.
double activity_of(const Socket& socket) {
  if (!socket.rates) return 0;
  // A segment without data is activity as well.
  return socket.rates->sent_bytes + socket.rates->received_bytes + socket.rates->segments_out +
         socket.rates->segments_in;
}

Cell count_rate_cell(double per_second, Emphasis emphasis = Emphasis::kNone) {
  if (per_second <= 0) return text_cell("–", Emphasis::kMuted);
  return report::number_cell(per_second, per_second < 10 ? 1 : 0, emphasis);
}

report::Table activity_table(const TableContext& context) {
  std::vector<const Socket*> sockets = context.connections;
  std::stable_sort(sockets.begin(), sockets.end(), [](const Socket* a, const Socket* b) {
    return activity_of(*a) > activity_of(*b);
  });
  const std::size_t shown =
      context.view.all ? sockets.size() : std::min(sockets.size(), context.view.top);
  report::Table table;
  table.title = "Per second";
  table.columns = {context.fd_column(),
                   {"peer", Align::kLeft},
                   {"sent"},
                   {"received"},
                   {"segs", Align::kRight, "", 2},
                   {"again"},
                   {"rwnd", Align::kRight, "%", 1},
                   {"RTT", Align::kRight, "ms"},
                   {"unsent", Align::kRight, "", 1}};
  bool unsent = false;
  for (std::size_t at = 0; at < shown; ++at) {
    const Socket& socket = *sockets[at];
    const Rates rates = socket.rates.value_or(Rates{});
    const std::uint32_t waiting = socket.facts.tcp.notsent_bytes.value_or(0);
    unsent = unsent || waiting > 0;
    table.rows.push_back({context.fd_cell(socket),
                          text_cell(peer_text(socket.facts, context.directions)),
                          rate_cell(rates.sent_bytes), rate_cell(rates.received_bytes),
                          count_rate_cell(rates.segments_out + rates.segments_in),
                          count_rate_cell(rates.retransmits, Emphasis::kBad),
                          count_rate_cell(rates.rwnd_limited * 100),
                          ms_cell(socket.facts.tcp.rtt_us), rate_cell(waiting)});
  }
  // Most often every socket's queue is empty.
  if (!unsent) drop_column(table, 8);
  table.notes = {
      "again: segments sent again; rwnd: share of the time that waits for the peer's "
      "window"};
  if (shown < sockets.size()) {
    table.notes.push_back(fmt::format("{} of {}: --top N shows more, --all every one",
                                      format_count(shown), format_count(sockets.size())));
  }
  return table;
}

std::string activity_summary(const TableContext& context) {
  Rates sum;
  std::uint64_t active = 0;
  for (const Socket* socket : context.connections) {
    if (!socket->rates) continue;
    active += activity_of(*socket) > 0 ? 1 : 0;
    sum.sent_bytes += socket->rates->sent_bytes;
    sum.received_bytes += socket->rates->received_bytes;
    sum.retransmits += socket->rates->retransmits;
  }
  const std::string head = fmt::format("{}: {}, {}", processes_text(context.snapshot),
                                       counted(context.listeners.size(), "listener"),
                                       counted(context.connections.size(), "connection"));
  if (!context.snapshot.apart) return head + "; rates come with the second look.";
  return fmt::format("{}, {} active. {}/s out, {}/s in, {:.1f} segments/s sent again.", head,
                     format_count(active), bytes_text(sum.sent_bytes),
                     bytes_text(sum.received_bytes), sum.retransmits);
}

}  // namespace

report::Report to_report(const Snapshot& snapshot, const report::RunInfo& run, const View& view) {
  const TableContext context(snapshot, view);
  report::Report report;
  report.title = "TCP sockets";
  report.run = run;
  report.summary = summary_of(context);
  add_listeners(report, context);
  add_connections(report, context);
  add_remarks(report, context);
  add_gaps(report, snapshot);
  return report;
}

std::vector<report::Block> to_activity(const Snapshot& snapshot, const View& view) {
  const TableContext context(snapshot, view);
  report::Report report;
  report.add(report::Note{report::NoteKind::kNote, activity_summary(context)});
  report.add(activity_table(context));
  add_remarks(report, context);
  return std::move(report.blocks);
}

}  // namespace tailward::sockets
