// A hedged HTTP client: the library's engine behind blocking calls that any thread may make.
//
//   #include <tailward/http_client.h>                    // link tailward::tailward
//
//   auto client = tailward::HttpClient::create({.hosts = {"10.0.0.1:80", "10.0.0.2:80"}});
//   if (!client) return complain(client.error());        // a host or the policy is misspelt
//   const auto response = client->get("/orders/7");      // from any thread, within 10 s
//   if (!response) return complain(response.error());    // no host could be reached in time
//   if (response->ok()) use(response->body);             // any status is a response: 404, 503 …
//   log(client->stats().sentence);                       // what hedging gains, or feeds
//
// What is hedged: GET, HEAD, OPTIONS and TRACE, any request with an Idempotency-Key field, and
// those that say `idempotent`. When such a request takes longer than nearly all others do, it is
// sent to a second host too; the first good response wins and the other attempt is cancelled. With
// one host nothing is hedged. Each attempt carries x-tailward-attempt: 0 for the primary, 1 and
// above for hedges. A request that arrives at your service with a number above 0 is a hedge
// already: pass the field on, and this client sends that request once.
//
// HTTP/1.1 in plain text over keep-alive connections. No TLS, no redirects, no proxies, no
// decompression: put a TLS sidecar in front of hosts that need it.
//
// Cost: one thread with an event loop (10 wake-ups a second while idle), up to `connections_max`
// connections to each host, about 130 KiB and up to 16 KiB for each host. Make one client for one
// service and keep it: it learns from all of its requests.
//
// This header needs no Boost and no header of the library but base/result.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tailward {

struct HttpField {
  std::string name;  // names compare without case
  std::string value;
};

struct HttpRequest {
  std::string method = "GET";  // all but CONNECT
  std::string target = "/";    // path and query, percent-encoded, with the slash in front
  // Host is the host's own address unless it stands here. The client writes Content-Length,
  // Transfer-Encoding and Connection itself and refuses them here.
  std::vector<HttpField> fields = {};
  std::string body = {};
  // Whether the service may see this request twice. Unset: see the head of this file. Set it to
  // true only where two executions do what one does.
  std::optional<bool> idempotent = {};
  // From the call to the last byte of the response. Unset: the client's.
  std::optional<std::chrono::nanoseconds> deadline = {};
};

struct HttpResponse {
  int status = 0;
  std::vector<HttpField> fields = {};
  std::string body = {};
  int attempt = 0;   // which attempt this is the response to: 0 the primary, 1 and above a hedge
  int attempts = 1;  // how many attempts the request took

  [[nodiscard]] bool ok() const { return status >= 200 && status < 300; }
  // The first value of that name; valid while the response is.
  [[nodiscard]] std::optional<std::string_view> field(std::string_view name) const;
};

struct HttpClientOptions {
  // The servers of one service, each as HOST:PORT ("10.0.0.1:80", "[::1]:80", "api.internal:80").
  // Hedging needs two. A name is one host, whatever number of addresses it has.
  std::vector<std::string> hosts;
  // As `tailward proxy --policy` takes it: "off", "fixed:50ms", "quantile:0.95", "adaptive:p99".
  std::string policy = "adaptive:p99";
  // Hedges per request at most, 0…1: the extra load that hedging may cause.
  double budget = 0.05;
  // From the call to the last byte of the response; above 0.
  std::chrono::nanoseconds deadline = std::chrono::seconds(10);
  // Open to one host at a time. Further calls wait for one, 4,096 at most; more are kOverloaded.
  std::size_t connections_max = 256;
  std::size_t response_bytes_max = 64 * 1024 * 1024;  // of one body; longer ones are kInvalid
  // Everything is decided and counted, no hedge is sent: what would have happened.
  bool dry_run = false;
  // Of all that is drawn, such as the host of a request. Unset: differs from client to client.
  std::optional<std::uint64_t> seed = {};
};

// Since the client was made, unless stated otherwise.
struct HttpClientStats {
  std::uint64_t requests = 0;
  std::uint64_t attempts = 0;  // requests + hedges
  std::uint64_t hedges = 0;
  std::uint64_t hedge_wins = 0;  // hedges whose response was the one returned
  std::uint64_t timed_out = 0;   // no response had begun at the deadline
  std::uint64_t failed = 0;      // every attempt failed; the best failure may be a 5xx response
  double trigger_rate = 0;       // hedged requests ÷ requests that could be hedged
  double extra_load = 0;         // hedges sent ÷ requests
  // From the start of a request to its response's first body byte, over the last minute, as the
  // caller saw it. Empty while nothing was answered.
  std::optional<std::chrono::nanoseconds> p50;
  std::optional<std::chrono::nanoseconds> p99;
  // On the last minute: "unknown", "healthy" (hedges catch a tail), "watch", or "cause" (the fault
  // lies in the servers; hedging hides it and adds load).
  std::string verdict;
  std::string sentence;               // the verdict as one sentence
  std::vector<std::string> findings;  // the figures behind it, one a line
};

// Thread safety: every function may be called from any thread at any time, except that moving,
// assigning and destroying need that no other thread is about to call. A moved-from client can only
// be assigned to or destroyed.
//
// Errors of a call, besides responses of every status:
//   kInvalid       the request is malformed (nothing was sent), or the response is, or is too long
//   kUnsupported   CONNECT, or a response that switches protocols
//   kOverloaded    too many calls wait for a connection
//   kDisconnected  no host could be reached, or the last of them broke off; the message names it
//   kTimedOut      the deadline, and nothing else
//   kCancelled     the client was destroyed meanwhile
class HttpClient {
 public:
  // Runs on the client's own thread, once. It must be quick, since every call waits for that
  // thread, and must not throw. REQUIRES: it does not call the blocking get() or send() of the same
  // client, nor destroy it (both are checked); it may begin further calls.
  using Callback = std::function<void(Result<HttpResponse>)>;

  // Starts the client's thread; connects to nobody yet. Errors: kInvalid, naming the option, with
  // a hint; kOverloaded when the system has no thread or descriptor left.
  [[nodiscard]] static Result<HttpClient> create(HttpClientOptions options);

  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  // Ends every call under way with kCancelled, closes all connections and joins the thread. Waits
  // for the callbacks that this runs, never for the network.
  ~HttpClient();

  // Both block until the response is complete or its deadline has passed.
  [[nodiscard]] Result<HttpResponse> get(std::string target) const;
  [[nodiscard]] Result<HttpResponse> send(HttpRequest request) const;
  // Returns at once: one thread keeps thousands of calls under way. The callback owns what it
  // needs; it runs also when the request is refused.
  void send(HttpRequest request, Callback done) const;

  // A consistent snapshot, taken between two events of the client's thread; waits for that thread
  // except in a callback.
  [[nodiscard]] HttpClientStats stats() const;

 private:
  class Core;
  explicit HttpClient(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace tailward
