// The rules for connections that are hard to get, and what sockets and counters say by themselves.

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "diag/facts.h"
#include "diag/rules.h"
#include "diag/thresholds.h"

namespace tailward::diag {
namespace {

const ServiceSummary* service_of(const NetworkEvidence& evidence,
                                 const tcp::SocketAddress& server) {
  for (const ServiceSummary& service : evidence.packets->services) {
    if (service.server == server) return &service;
  }
  return nullptr;
}

void show_queue(Finding& finding, const NetworkEvidence::ListenerWatch& listener) {
  finding.evidence.push_back(
      {fmt::format("{}: up to {} connections waiting to be accepted where {} may; waiting in {} of "
                   "{} looks, full in {}",
                   to_string(listener.local), listener.queue_max, listener.backlog,
                   listener.looks_waiting, listener.looks, listener.looks_full)});
}

void show_counters(Finding& finding, const tcp::HostCounters& counters) {
  finding.evidence.push_back(
      {fmt::format("this host counted {} overflows of listen queues and {} dropped SYNs or ACKs",
                   format_count(counters.listen_overflows), format_count(counters.listen_drops))});
}

void judge_listeners(const NetworkEvidence& evidence, std::vector<Finding>& findings) {
  for (const auto& listener : evidence.listeners) {
    if (listener.looks == 0) continue;
    const bool overflowed = evidence.counters && evidence.counters->listen_overflows > 0;
    if (listener.looks_full > 0 && overflowed) {
      Finding finding = found(
          Cause::kListenOverflow, Certainty::kProven,
          fmt::format("the queue of connections that {} has not accepted yet is full ({} of {}): "
                      "new ones are dropped, and their clients try again after a second",
                      to_string(listener.local), listener.queue_max, listener.backlog));
      show_queue(finding, listener);
      show_counters(finding, *evidence.counters);
      findings.push_back(std::move(finding));
    } else if (listener.looks_waiting * 5 >= listener.looks &&
               listener.looks_waiting >= thresholds.recurrence.listener_waiting_min) {
      Finding finding =
          found(Cause::kSlowAccept, Certainty::kProven,
                fmt::format("{} is slow to accept connections: up to {} of them were waiting",
                            to_string(listener.local), listener.queue_max));
      show_queue(finding, listener);
      findings.push_back(std::move(finding));
    }
  }
}

void judge_refused(const NetworkEvidence& evidence, std::vector<Finding>& findings) {
  if (evidence.packets == nullptr) return;
  for (const ServiceSummary& service : evidence.packets->services) {
    if (service.refused == 0 ||
        service.refused * thresholds.recurrence.refused_share_inverse < service.connections)
      continue;
    Finding finding = found(Cause::kConnectionRefused, Certainty::kProven,
                            fmt::format("{} refuses connections: {} of {} were answered with RST",
                                        to_string(service.server), format_count(service.refused),
                                        format_count(service.connections)));
    finding.evidence.push_back({"SYN, then RST", service.refused_packets});
    findings.push_back(std::move(finding));
  }
}

// Sockets that say themselves what limits them, although no request was seen to suffer.
void judge_limited(const NetworkEvidence& evidence, std::vector<Finding>& findings) {
  for (const ServiceSide& side : sides_of(evidence)) {
    const SideFacts& facts = side.facts;
    if (side.pinned == nullptr) continue;
    const auto limited = static_cast<double>(facts.sndbuf_limited_us);
    if (facts.busy_us == 0 ||
        limited < thresholds.recurrence.limited_share * static_cast<double>(facts.busy_us))
      continue;
    Finding finding = found(
        Cause::kSmallSendBuffer, Certainty::kProven,
        fmt::format("sockets {} {} wait for room in their send buffers {} of the time that they "
                    "have something to send",
                    side.at_client ? "to" : "of", to_string(side.server),
                    format_share(limited / static_cast<double>(facts.busy_us))));
    finding.evidence.push_back({fmt::format(
        "SO_SNDBUF has been set by the program on {} of {} sockets, to {} bytes and "
        "more (fd {} of process {})",
        format_count(facts.sndbuf_locked.yes), format_count(facts.sockets),
        format_count(static_cast<std::uint64_t>(facts.sndbuf.value_or(0))), facts.fd, facts.pid)});
    const tcp::TcpInfo& tcp = side.pinned->tcp;
    if (tcp.delivery_bytes_per_s.value_or(0) > 0 && tcp.rtt_us) {
      const double rate = static_cast<double>(*tcp.delivery_bytes_per_s);
      finding.evidence.push_back(
          {fmt::format("twice bandwidth × round-trip time, as measured now: {} bytes",
                       format_count(static_cast<std::uint64_t>(
                           2 * rate * static_cast<double>(*tcp.rtt_us) / 1e6)))});
    }
    finding.cost = std::chrono::microseconds(facts.sndbuf_limited_us);
    findings.push_back(std::move(finding));
  }
}

}  // namespace

Judgement judge_syn(const Recurrence& seen, const NetworkEvidence& evidence) {
  const StallPattern& worst = seen.worst();
  const auto* listener = listener_of(evidence, worst.server);
  const ServiceSummary* service = service_of(evidence, worst.server);
  // The host's counters tell of all its listeners: with one of them in sight, they are about it.
  const bool full = listener != nullptr && listener->looks_full > 0;
  const bool counted =
      listener != nullptr && evidence.counters && evidence.counters->listen_overflows > 0;
  std::uint64_t dropped = 0;
  for (const StallPattern* pattern : seen.patterns) {
    if (pattern->kind == StallKind::kSynDropped) dropped += pattern->count;
  }
  // Answers that were sent and sent again were lost on their way; only where most were not sent at
  // all has the host dropped the question.
  if (counted || full || dropped * 2 > seen.count) {
    Finding finding = found(
        Cause::kListenOverflow,
        counted && (full || dropped > 0) ? Certainty::kProven : Certainty::kConsistent,
        fmt::format("{} drops new connections: their SYNs or ACKs reached its host, which did not "
                    "answer, and the clients tried again, {} lost at the median",
                    to_string(worst.server), format_duration(worst.length.median)));
    finding.evidence.push_back(
        {fmt::format("{} connections began after a repeated SYN or SYN-ACK, {} lost in all",
                     format_count(seen.connections), format_duration(seen.total)),
         worst.packets});
    if (listener != nullptr) show_queue(finding, *listener);
    if (counted) show_counters(finding, *evidence.counters);
    if (!counted && !full) {
      finding.missing.emplace_back("the host's ListenOverflows and the listener's queue");
    }
    return finding;
  }
  Finding finding = found(
      Cause::kSynLoss, Certainty::kConsistent,
      fmt::format("connections to {} begin late: a SYN or its answer is lost, and comes again "
                  "after a second or more, {} lost at the median",
                  to_string(worst.server), format_duration(worst.length.median)));
  finding.evidence.push_back(
      {fmt::format("{} connections, {} lost in all; the SYN was sent again {} times",
                   format_count(seen.connections), format_duration(seen.total),
                   format_count(service == nullptr ? 0 : service->syns_repeated)),
       worst.packets});
  finding.missing.emplace_back(
      "the server's counters: a full queue of connections there (ListenOverflows) looks the same "
      "from here");
  return finding;
}

std::vector<Finding> judge_without_stalls(const NetworkEvidence& evidence) {
  std::vector<Finding> findings;
  judge_listeners(evidence, findings);
  judge_refused(evidence, findings);
  judge_limited(evidence, findings);
  return findings;
}

}  // namespace tailward::diag
