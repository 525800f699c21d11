// What to do about each cause, and how to know that it helped.

#include "diag/rules.h"

namespace tailward::diag {
namespace {

struct Advice {
  Cause cause;
  std::string_view remedy, verify;
};

constexpr Advice kAdvice[] = {
    {Cause::kNagleDelayedAck,
     "Write each message with one call (writev, a buffered writer flushed once), or set "
     "TCP_NODELAY on the side that holds; best both.",
     "The step of about 40 ms is gone from the latencies; `tailward treat --set "
     "nodelay=1` shows it on the living process first."},
    {Cause::kSmallWrites,
     "Gather the small writes in a buffer and flush it once per message, or leave "
     "TCP_NODELAY off on connections that only stream.",
     "Segments per KiB fall by the same factor, and the stream's time with them."},
    {Cause::kCorked,
     "Uncork at the end of every message (TCP_CORK 0, or a last send without MSG_MORE); "
     "TCP_NODELAY does not help a corked socket.",
     "No segment leaves 200 ms after the one before; P99 falls by about 200 ms."},
    {Cause::kSmallSendBuffer,
     "Remove the setsockopt(SO_SNDBUF), so that the kernel tunes the buffer again, or "
     "set it to at least twice bandwidth × round-trip time.",
     "Bytes in flight grow beyond the old limit and sndbuf_limited in TCP_INFO stands "
     "still."},
    {Cause::kSmallReceiveWindow,
     "Remove the setsockopt(SO_RCVBUF) at the receiver, so that the kernel tunes the "
     "window again, or set it to at least twice bandwidth × round-trip time.",
     "The window grows beyond the old limit and rwnd_limited in the sender's TCP_INFO "
     "stands still."},
    {Cause::kPacketLoss,
     "Find where packets are dropped (interface, queue and switch counters; `ss -ti` for "
     "retransmissions) and mend that; where it cannot be mended, a smaller rto_min on "
     "the route shortens each stall.",
     "Retransmitted segments fall to nearly none while the load is the same."},
    {Cause::kSynLoss,
     "Look for drops between the two hosts and for a full listen queue on the server; "
     "keep connections open instead of making one for each request.",
     "No SYN is sent twice, and no connect takes a second."},
    {Cause::kListenOverflow,
     "Accept faster (a thread that does nothing else, or several listeners with "
     "SO_REUSEPORT), and raise the backlog: listen()'s argument and "
     "net.core.somaxconn, of which the smaller counts.",
     "ListenOverflows stands still and the listener's queue stays below its limit."},
    {Cause::kSlowAccept,
     "Find what the accepting thread does between two accepts and move it elsewhere; "
     "accept in a loop until nothing waits.",
     "The listener's queue is empty whenever one looks, and first requests are as fast "
     "as later ones."},
    {Cause::kSlowReader,
     "Find out what the reading program does instead of reading (a busy event loop, a "
     "lock, a slow disk behind it); a larger buffer only hides it.",
     "The window stays as large as it is while data come."},
    {Cause::kWireLatency,
     "Look at the path: queues that are too long (bufferbloat), a detour, a VPN, a "
     "host that is short of CPU; or move the ends closer together.",
     "The handshake takes as long as the distance demands."},
    {Cause::kConnectionRefused,
     "Start the server, or correct the address and port; see whether a firewall answers "
     "with RST.",
     "The SYN is answered with SYN-ACK."},
};

}  // namespace

void advise(Finding& finding) {
  for (const Advice& advice : kAdvice) {
    if (advice.cause != finding.cause) continue;
    finding.remedy = advice.remedy;
    finding.verify = advice.verify;
  }
}

}  // namespace tailward::diag
