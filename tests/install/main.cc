// Uses the installed library as a stranger would: a race of two attempts, on timers moved by hand,
// and a profiled lock.
#include <tailward/mutex.h>
#include <chrono>
#include <cstdio>
#include <mutex>

#include "hedge/engine/race.h"
#include "hedge/engine/route.h"
#include "io/timers.h"

using namespace std::chrono_literals;
using tailward::hedge::Action;

int main() {
  tailward::io::Timers timers;
  tailward::hedge::RouteConfig config;
  config.policy = *tailward::hedge::parse_policy("fixed:10ms");
  tailward::hedge::Route route(config);
  if (!route.add_host("one") || !route.add_host("two")) return 1;
  route.tick(timers.now());

  tailward::hedge::Race race(route);
  if (race.start({}, timers.now()).size() == 0) return 1;
  timers.advance_to(timers.now() + 10ms);
  int started = 0;
  for (const Action& action : race.on_timer(timers.now())) {
    if (action.kind == Action::Kind::kStart) started = action.attempt;
  }

  tailward::ContentionProfile profile;
  tailward::ProfiledMutex mutex(profile);
  const std::lock_guard lock(mutex);
  std::printf("after 10 ms, attempt %d was started\n", started);
  return started == 1 ? 0 : 1;
}
