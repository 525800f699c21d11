// Four threads fight for one lock; the profile says what that cost, and where.
//
//   profiled_lock contention.pb.gz && go tool pprof -top contention.pb.gz
#include <tailward/mutex.h>

#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : "contention.pb.gz";
  tailward::ContentionProfile profile;
  tailward::ProfiledMutex mutex(profile);
  unsigned long long sum = 0;

  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const std::lock_guard guard(mutex);
        for (unsigned step = 0; step < 1000; ++step) sum = sum * 31 + step;  // the work
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  const tailward::ContentionTotals totals = mutex.totals();
  std::printf("%llu contended acquisitions waited for %.1f ms together (checksum %llu)\n",
              static_cast<unsigned long long>(totals.contentions),
              static_cast<double>(totals.wait.count()) / 1e6, sum);
  if (const auto written = tailward::write_pprof(profile, path); !written) {
    std::fprintf(stderr, "profiled_lock: %s\n", written.error().message.c_str());
    return 1;
  }
  std::printf("wrote %s\n", path);
  return 0;
}
