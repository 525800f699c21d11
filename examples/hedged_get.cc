// Fetches one path many times from the servers of a service; says what hedging did for the tail.
//
//   hedged_get adaptive:p99 /orders/7 10.0.0.1:80 10.0.0.2:80
#include <tailward/http_client.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr int kThreads = 8;
constexpr int kCallsEach = 100;

int complain(const tailward::Error& error) {
  std::fprintf(stderr, "hedged_get: %s\n%s\n", error.message.c_str(), error.hint.c_str());
  return 2;
}

double ms(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: hedged_get POLICY PATH HOST:PORT...\n", stderr);
    return 2;
  }
  const auto client = tailward::HttpClient::create({
      .hosts = {argv + 3, argv + argc},
      .policy = argv[1],
      .deadline = std::chrono::seconds(5),
  });
  if (!client) return complain(client.error());

  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int call = 0; call < kCallsEach; ++call) {
        const auto response = client->get(argv[2]);
        if (!response || !response->ok()) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  const tailward::HttpClientStats stats = client->stats();
  std::printf("%d requests, %d failed\n", kThreads * kCallsEach, failed.load());
  if (stats.p99) std::printf("P50 %.1f ms, P99 %.1f ms\n", ms(*stats.p50), ms(*stats.p99));
  std::printf("%llu hedges (%.1f %% extra load), %llu of them won\n",
              static_cast<unsigned long long>(stats.hedges), 100 * stats.extra_load,
              static_cast<unsigned long long>(stats.hedge_wins));
  std::printf("%s: %s\n", stats.verdict.c_str(), stats.sentence.c_str());
  return failed == 0 ? 0 : 1;
}
