#include "sockets/json.h"

#include <string>
#include <utility>

namespace tailward::sockets {
namespace {

using report::Json;

// Appends without looking for the key, which makes 5,000 sockets quick.
void put(Json& object, const char* key, Json value) {
  object.get_ref<Json::object_t&>().emplace_back(key, std::move(value));
}

template <class T>
void put(Json& object, const char* key, const std::optional<T>& value) {
  put(object, key, value ? Json(*value) : Json(nullptr));
}

Json locks_of(const tcp::SocketOptions& options) {
  // null: it could not be read. An empty list: read, and nothing is locked.
  if (!options.sndbuf_locked && !options.rcvbuf_locked) return nullptr;
  Json locks = Json::array();
  if (options.sndbuf_locked.value_or(false)) locks.emplace_back("snd");
  if (options.rcvbuf_locked.value_or(false)) locks.emplace_back("rcv");
  return locks;
}

Json to_json(const std::optional<tcp::SocketMemory>& memory) {
  if (!memory) return nullptr;
  Json json = Json::object();
  put(json, "rmem_alloc", memory->rmem_alloc);
  put(json, "rcvbuf", memory->rcvbuf);
  put(json, "wmem_alloc", memory->wmem_alloc);
  put(json, "sndbuf", memory->sndbuf);
  put(json, "fwd_alloc", memory->fwd_alloc);
  put(json, "wmem_queued", memory->wmem_queued);
  put(json, "optmem", memory->optmem);
  put(json, "backlog", memory->backlog);
  put(json, "drops", memory->drops);
  return json;
}

Json to_json(const std::vector<diag::SocketRemark>& remarks) {
  Json json = Json::array();
  for (const diag::SocketRemark& remark : remarks) {
    json.push_back({{"code", remark.code},
                    {"severity", diag::to_string(remark.severity)},
                    {"sentence", remark.sentence}});
  }
  return json;
}

Json to_json(const Rates& rates) {
  return {
      {"sent_bytes_per_s", rates.sent_bytes},     {"received_bytes_per_s", rates.received_bytes},
      {"segments_out_per_s", rates.segments_out}, {"segments_in_per_s", rates.segments_in},
      {"retransmits_per_s", rates.retransmits},   {"rwnd_limited", rates.rwnd_limited}};
}

Json to_json(const Socket& socket) {
  const tcp::SocketFacts& facts = socket.facts;
  Json json = Json::object();
  put(json, "pid", facts.pid);
  put(json, "fd", facts.fd);
  put(json, "inode", facts.inode);
  put(json, "uid", facts.uid);
  put(json, "state", std::string(tcp::to_string(facts.state)));
  put(json, "local", tcp::to_string(facts.local));
  put(json, "remote", tcp::to_string(facts.remote));
  put(json, "recv_queue", facts.recv_queue);
  put(json, "send_queue", facts.send_queue);
  put(json, "options", sockets::to_json(facts.options));
  put(json, "tcp", sockets::to_json(facts.tcp));
  put(json, "memory", to_json(facts.memory));
  if (socket.rates) put(json, "rates", to_json(*socket.rates));
  put(json, "remarks", to_json(socket.remarks));
  return json;
}

Json processes_of(const Snapshot& snapshot) {
  Json json = Json::array();
  for (const ProcessInfo& process : snapshot.processes) {
    json.push_back({{"pid", process.pid},
                    {"name", process.name},
                    {"runtime", tcp::to_string(process.runtime)}});
  }
  return json;
}

}  // namespace

Json to_json(const tcp::SocketOptions& options) {
  Json json = Json::object();
  put(json, "nodelay", options.nodelay);
  put(json, "cork", options.cork);
  put(json, "quickack", options.quickack);
  put(json, "sndbuf", options.sndbuf);
  put(json, "rcvbuf", options.rcvbuf);
  put(json, "buf_lock", locks_of(options));
  put(json, "keepalive", options.keepalive);
  put(json, "keepidle_s", options.keepidle_s);
  put(json, "keepintvl_s", options.keepintvl_s);
  put(json, "keepcnt", options.keepcnt);
  std::optional<bool> lingers;
  if (options.linger_s) lingers = *options.linger_s >= 0;
  put(json, "linger", lingers);
  put(json, "linger_s", lingers.value_or(false) ? options.linger_s : std::nullopt);
  put(json, "user_timeout_ms", options.user_timeout_ms);
  put(json, "notsent_lowat", options.notsent_lowat);
  put(json, "v6only", options.v6only);
  put(json, "reuseaddr", options.reuseaddr);
  put(json, "reuseport", options.reuseport);
  put(json, "defer_accept_s", options.defer_accept_s);
  put(json, "fastopen_queue", options.fastopen_queue);
  put(json, "congestion", options.congestion);
  put(json, "rto_min_us", options.rto_min_us);
  put(json, "rto_max_ms", options.rto_max_ms);
  put(json, "delack_max_us", options.delack_max_us);
  put(json, "busy_poll_us", options.busy_poll_us);
  put(json, "tos", options.tos);
  return json;
}

Json to_json(const tcp::TcpInfo& tcp) {
  Json json = Json::object();
  put(json, "rto_us", tcp.rto_us);
  put(json, "ato_us", tcp.ato_us);
  put(json, "rtt_us", tcp.rtt_us);
  put(json, "rttvar_us", tcp.rttvar_us);
  put(json, "min_rtt_us", tcp.min_rtt_us);
  put(json, "rcv_rtt_us", tcp.rcv_rtt_us);
  put(json, "snd_mss", tcp.snd_mss);
  put(json, "rcv_mss", tcp.rcv_mss);
  put(json, "advmss", tcp.advmss);
  put(json, "pmtu", tcp.pmtu);
  put(json, "cwnd", tcp.cwnd);
  put(json, "ssthresh", tcp.ssthresh);
  put(json, "rcv_ssthresh", tcp.rcv_ssthresh);
  put(json, "rcv_space", tcp.rcv_space);
  put(json, "snd_wscale", tcp.snd_wscale);
  put(json, "rcv_wscale", tcp.rcv_wscale);
  put(json, "snd_wnd", tcp.snd_wnd);
  put(json, "rcv_wnd", tcp.rcv_wnd);
  put(json, "unacked", tcp.unacked);
  put(json, "sacked", tcp.sacked);
  put(json, "lost", tcp.lost);
  put(json, "retrans_now", tcp.retrans_now);
  put(json, "total_retrans", tcp.total_retrans);
  put(json, "reordering", tcp.reordering);
  put(json, "rcv_ooopack", tcp.rcv_ooopack);
  put(json, "backoff", tcp.backoff);
  put(json, "retransmits", tcp.retransmits);
  put(json, "probes", tcp.probes);
  put(json, "notsent_bytes", tcp.notsent_bytes);
  put(json, "segs_out", tcp.segs_out);
  put(json, "segs_in", tcp.segs_in);
  put(json, "data_segs_out", tcp.data_segs_out);
  put(json, "data_segs_in", tcp.data_segs_in);
  put(json, "delivered", tcp.delivered);
  put(json, "bytes_sent", tcp.bytes_sent);
  put(json, "bytes_acked", tcp.bytes_acked);
  put(json, "bytes_received", tcp.bytes_received);
  put(json, "bytes_retrans", tcp.bytes_retrans);
  put(json, "busy_us", tcp.busy_us);
  put(json, "rwnd_limited_us", tcp.rwnd_limited_us);
  put(json, "sndbuf_limited_us", tcp.sndbuf_limited_us);
  put(json, "pacing_bytes_per_s", tcp.pacing_bytes_per_s);
  put(json, "delivery_bytes_per_s", tcp.delivery_bytes_per_s);
  put(json, "app_limited", tcp.app_limited);
  put(json, "last_data_sent_ms", tcp.last_data_sent_ms);
  put(json, "last_data_recv_ms", tcp.last_data_recv_ms);
  put(json, "last_ack_recv_ms", tcp.last_ack_recv_ms);
  return json;
}

Json to_json(const Snapshot& snapshot, const report::RunInfo& run) {
  const SocketCounts counts = count(snapshot);
  Json json = report::envelope(run);
  json["processes"] = processes_of(snapshot);
  json["counts"] = {{"tcp", snapshot.sockets.size()},  {"unix", snapshot.unix_sockets},
                    {"other", snapshot.other_sockets}, {"vanished", snapshot.vanished},
                    {"denied", snapshot.denied},       {"states", counts.states},
                    {"remarks", counts.remarks}};
  if (snapshot.why_denied) json["denied_why"] = snapshot.why_denied->message;
  if (snapshot.apart) json["apart_ms"] = to_ms(*snapshot.apart);
  Json& sockets = json["sockets"] = Json::array();
  for (const Socket& socket : snapshot.sockets) sockets.push_back(to_json(socket));
  return json;
}

}  // namespace tailward::sockets
