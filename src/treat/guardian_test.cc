#include "treat/guardian.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <cstring>
#include <optional>
#include <thread>

#include "treat/testing.h"

namespace tailward::treat {
namespace {

using testing::ends;
using ::testing::HasSubstr;
using testing::kDeadlineMs;
using testing::Victim;

class GuardianTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<probe::Process> process = probe::Process::open(victim_.pid());
    ASSERT_TRUE(process) << process.error().message;
    processes_.push_back(std::move(*process));
    const auto mine = processes_[0].duplicate(0);
    if (!mine) GTEST_SKIP() << "descriptors cannot be duplicated here: " << mine.error().message;
  }

  std::unique_ptr<Guardian> start(std::string_view settings,
                                  Duration patience = kGuardianPatience) {
    settings_ = *parse_settings(settings);
    Result<std::unique_ptr<Guardian>> guardian = Guardian::start(processes_, settings_, patience);
    EXPECT_TRUE(guardian);
    return std::move(*guardian);
  }
  int nodelay(const Victim::Connection& connection) {
    return victim_.read(connection.target.fd, Option::kNodelay).value;
  }

  Victim victim_;
  std::vector<probe::Process> processes_;
  std::vector<Setting> settings_;
};

TEST_F(GuardianTest, SetsAgainOnlyWhatIsChangedAndStillThere) {
  const auto one = victim_.connect();
  const auto two = victim_.connect();
  settings_ = parse_settings("quickack=1").value();
  UndoLog log(processes_, settings_);
  for (const auto& connection : {one, two}) {
    victim_.set(connection.target.fd, {Option::kQuickack, 0});
    ASSERT_EQ(log.track(connection.target).outcome, StepOutcome::kDone);
  }
  EXPECT_EQ(log.refreshed(), 0u);
  ASSERT_EQ(log.apply(0).outcome, StepOutcome::kDone);
  ASSERT_EQ(log.apply(1).outcome, StepOutcome::kDone);
  EXPECT_EQ(log.refreshed(), 2u);
  victim_.close(one.target.fd);
  log.refresh();
  EXPECT_EQ(log.refreshed(), 1u);
  EXPECT_EQ(log.restore_all().closed, 1u);
  EXPECT_EQ(refresh_period(200), std::chrono::milliseconds(10));
  EXPECT_EQ(refresh_period(1000), std::chrono::milliseconds(50));
}

TEST_F(GuardianTest, NotesThenChangesThenRestores) {
  const auto connection = victim_.connect();
  const auto guardian = start("nodelay=1");
  const StepResult noted = guardian->track(connection.target);
  ASSERT_EQ(noted.outcome, StepOutcome::kDone) << noted.text();
  EXPECT_EQ(noted.before[0].value, 0);
  EXPECT_EQ(nodelay(connection), 0);
  const StepResult applied = guardian->apply(noted.id);
  EXPECT_EQ(applied.outcome, StepOutcome::kDone) << applied.text();
  EXPECT_EQ(applied.after[0].value, 1);
  EXPECT_EQ(nodelay(connection), 1);
  EXPECT_EQ(guardian->restore(noted.id).outcome, StepOutcome::kDone);
  EXPECT_EQ(nodelay(connection), 0);
  EXPECT_EQ(guardian->apply(noted.id).outcome, StepOutcome::kDone);
  EXPECT_EQ(nodelay(connection), 1);
  const Rollback rollback = guardian->finish(false);
  EXPECT_EQ(rollback.restored, 1u);
  EXPECT_TRUE(rollback.complete());
  EXPECT_EQ(nodelay(connection), 0);
  EXPECT_TRUE(ends(guardian->pid()));
}

TEST_F(GuardianTest, RestoresEveryOptionToItsOldValue) {
  // Old values that differ from the defaults, where the application may have set them.
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"nodelay=1", ""},
      {"nodelay=0", "nodelay=1"},
      {"quickack=1", "quickack=0"},
      {"cork=1", ""},
      {"cork=0", "cork=1"},
      {"sndbuf=64KiB", ""},
      {"sndbuf=64KiB", "sndbuf=5000"},
      {"sndbuf=auto", "sndbuf=4KiB"},
      {"rcvbuf=64KiB", ""},
      {"rcvbuf=auto", "rcvbuf=4KiB"},
      {"rcvbuf=8KiB,sndbuf=auto", "sndbuf=4KiB"},
      {"notsent_lowat=16KiB", ""},
      {"notsent_lowat=off", "notsent_lowat=1KiB"},
      {"user_timeout=30s", ""},
      {"user_timeout=off", "user_timeout=5s"},
      {"keepalive=1,keepidle=30s,keepintvl=5s,keepcnt=3", ""},
      {"keepalive=0", "keepalive=1"},
  };
  for (const auto& [treatment, set_before] : cases) {
    SCOPED_TRACE(treatment + " over " + (set_before.empty() ? "the defaults" : set_before));
    const auto connection = victim_.connect();
    if (!set_before.empty()) {
      const std::vector<Setting> settings = parse_settings(set_before).value();
      for (const Setting& one : settings) victim_.set(connection.target.fd, one);
    }
    std::vector<State> old;
    for (const OptionInfo& one : known_options()) {
      old.push_back(victim_.read(connection.target.fd, one.option));
    }
    const auto guardian = start(treatment);
    const StepResult noted = guardian->track(connection.target);
    ASSERT_EQ(noted.outcome, StepOutcome::kDone) << noted.text();
    const StepResult applied = guardian->apply(noted.id);
    ASSERT_EQ(applied.outcome, StepOutcome::kDone) << applied.text();
    for (const Setting& one : settings_) {
      const State now = victim_.read(connection.target.fd, one.option);
      EXPECT_TRUE(is_non_sticky(one.option) ? now.value == 1 : satisfies(now, one))
          << to_string(one.option, now);
    }
    EXPECT_TRUE(guardian->finish(false).complete());
    for (const OptionInfo& one : known_options()) {
      const State now = victim_.read(connection.target.fd, one.option);
      EXPECT_EQ(now, old[static_cast<std::size_t>(one.option)])
          << one.name << " is " << to_string(one.option, now);
    }
    ::close(connection.peer);
  }
}

TEST_F(GuardianTest, RestoresTheTimersOfNewerKernels) {
  const auto connection = victim_.connect();
  const auto guardian = start("rto_min_us=20ms,delack_max_us=20ms");
  const StepResult noted = guardian->track(connection.target);
  if (noted.text().find("does not have it") != std::string::npos) {
    GTEST_SKIP() << "this kernel has no TCP_RTO_MIN_US";
  }
  ASSERT_EQ(guardian->apply(noted.id).outcome, StepOutcome::kDone);
  EXPECT_EQ(victim_.read(connection.target.fd, Option::kRtoMin).value, 20'000);
  EXPECT_EQ(guardian->finish(false).restored, 1u);
  EXPECT_EQ(victim_.read(connection.target.fd, Option::kRtoMin), noted.before[0]);
  EXPECT_EQ(victim_.read(connection.target.fd, Option::kDelackMax), noted.before[1]);
}

TEST_F(GuardianTest, RestoresEverythingWhenItsStarterIsKilled) {
  const auto one = victim_.connect();
  const auto two = victim_.connect();
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const int starter = ::fork();
  if (starter == 0) {
    const auto guardian = start("nodelay=1,sndbuf=64KiB");
    int pid = guardian->pid();
    for (const Target& target : {one.target, two.target}) {
      if (guardian->apply(guardian->track(target).id).outcome != StepOutcome::kDone) pid = -1;
    }
    if (::write(told[1], &pid, sizeof pid) != sizeof pid) ::_exit(1);
    while (true) ::pause();
  }
  int guardian = -1;
  ASSERT_EQ(::read(told[0], &guardian, sizeof guardian), static_cast<ssize_t>(sizeof guardian));
  ASSERT_GT(guardian, 0);
  EXPECT_EQ(nodelay(one), 1);
  EXPECT_EQ(nodelay(two), 1);
  ::kill(starter, SIGKILL);
  ::waitpid(starter, nullptr, 0);
  ASSERT_TRUE(ends(guardian));
  EXPECT_EQ(nodelay(one), 0);
  EXPECT_EQ(nodelay(two), 0);
  EXPECT_FALSE(victim_.read(two.target.fd, Option::kSndbuf).locked);
  ::close(told[0]);
  ::close(told[1]);
}

TEST_F(GuardianTest, IsNotReachedByWhatItsStartersTerminalSends) {
  const auto connection = victim_.connect();
  const auto guardian = start("nodelay=1");
  const StepResult noted = guardian->track(connection.target);
  EXPECT_NE(::getsid(guardian->pid()), ::getsid(0));
  for (const int number : {SIGINT, SIGHUP, SIGTERM, SIGQUIT}) ::kill(guardian->pid(), number);
  EXPECT_EQ(guardian->apply(noted.id).outcome, StepOutcome::kDone);
  EXPECT_EQ(guardian->finish(false).restored, 1u);
  EXPECT_FALSE(guardian->lost());
}

TEST_F(GuardianTest, IsReplacedByItsStarterWhenItIsKilledItself) {
  const auto connection = victim_.connect();
  const auto guardian = start("nodelay=1");
  const StepResult noted = guardian->track(connection.target);
  ASSERT_EQ(guardian->apply(noted.id).outcome, StepOutcome::kDone);
  ::kill(guardian->pid(), SIGKILL);
  ASSERT_TRUE(ends(guardian->pid()));
  EXPECT_FALSE(guardian->ping());
  EXPECT_EQ(nodelay(connection), 1);
  const Rollback rollback = guardian->finish(false);
  EXPECT_TRUE(guardian->lost());
  EXPECT_EQ(rollback.restored, 1u);
  EXPECT_EQ(nodelay(connection), 0);
}

TEST_F(GuardianTest, RestoresEverythingWhenItsStarterIsSilentForTooLong) {
  const auto connection = victim_.connect();
  const auto guardian = start("nodelay=1", std::chrono::milliseconds(300));
  const StepResult noted = guardian->track(connection.target);
  ASSERT_EQ(guardian->apply(noted.id).outcome, StepOutcome::kDone);
  ASSERT_TRUE(ends(guardian->pid()));
  EXPECT_EQ(nodelay(connection), 0);
  EXPECT_TRUE(guardian->finish(false).complete());
}

TEST_F(GuardianTest, HoldsNoConnectionOpenThatItsOwnerCloses) {
  const auto connection = victim_.connect();
  const auto guardian = start("nodelay=1,quickack=1");
  const StepResult noted = guardian->track(connection.target);
  ASSERT_EQ(guardian->apply(noted.id).outcome, StepOutcome::kDone);
  victim_.close(connection.target.fd);
  pollfd state{connection.peer, POLLIN, 0};
  ASSERT_EQ(::poll(&state, 1, kDeadlineMs), 1);
  char byte = 0;
  EXPECT_EQ(::recv(connection.peer, &byte, 1, MSG_DONTWAIT), 0);
  const Rollback rollback = guardian->finish(false);
  EXPECT_EQ(rollback.closed, 1u);
  EXPECT_TRUE(rollback.complete());
}

TEST_F(GuardianTest, DoesNotTouchAnotherSocketThatGotTheNumber) {
  const auto before = victim_.connect();
  const auto after = victim_.connect();
  const auto guardian = start("nodelay=1");
  const StepResult noted = guardian->track(before.target);
  victim_.replace(before.target.fd, after.target.fd);
  EXPECT_EQ(guardian->apply(noted.id).outcome, StepOutcome::kClosed);
  EXPECT_EQ(nodelay(before), 0);
}

TEST_F(GuardianTest, DoesNotRestoreIntoAnotherSocketThatGotTheNumber) {
  const auto before = victim_.connect();
  const auto after = victim_.connect();
  const auto guardian = start("nodelay=1");
  const StepResult noted = guardian->track(before.target);
  ASSERT_EQ(guardian->apply(noted.id).outcome, StepOutcome::kDone);
  victim_.set(after.target.fd, {Option::kNodelay, 1});
  victim_.replace(before.target.fd, after.target.fd);
  EXPECT_EQ(guardian->finish(false).closed, 1u);
  EXPECT_EQ(nodelay(before), 1);
}

TEST_F(GuardianTest, DoesNotTrackASocketThatIsNotTheOneChosen) {
  auto connection = victim_.connect();
  const auto guardian = start("nodelay=1");
  connection.target.inode += 1;
  EXPECT_EQ(guardian->track(connection.target).outcome, StepOutcome::kClosed);
  connection.target.fd = 999;
  EXPECT_EQ(guardian->track(connection.target).outcome, StepOutcome::kClosed);
}

TEST_F(GuardianTest, FindsAConnectionAgainThatWasHandedToAnotherProcess) {
  const auto connection = victim_.connect();
  const auto guardian = start("nodelay=1");
  const StepResult noted = guardian->track(connection.target);
  ASSERT_EQ(guardian->apply(noted.id).outcome, StepOutcome::kDone);
  victim_.hand_over(connection.target.fd);
  EXPECT_EQ(nodelay(connection), 1);
  EXPECT_EQ(guardian->finish(false).restored, 1u);
  EXPECT_EQ(nodelay(connection), 0);
}

// Both ends in a network namespace of their own. Empty without the right to make one.
std::unique_ptr<Victim> victim_elsewhere() {
  std::unique_ptr<Victim> made;
  std::thread([&made] {
    if (::unshare(CLONE_NEWNET) != 0) return;
    const int any = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq loopback{};
    std::strcpy(loopback.ifr_name, "lo");
    loopback.ifr_flags = IFF_UP | IFF_RUNNING;
    const bool up = ::ioctl(any, SIOCSIFFLAGS, &loopback) == 0;
    ::close(any);
    if (up) made = std::make_unique<Victim>();
  }).join();
  return made;
}

TEST_F(GuardianTest, FindsAConnectionOfAnEndedProcessAgainInItsNetworkNamespace) {
  const std::unique_ptr<Victim> elsewhere = victim_elsewhere();
  if (!elsewhere) GTEST_SKIP() << "no network namespace can be made here";
  processes_.clear();
  processes_.push_back(probe::Process::open(elsewhere->pid()).value());
  const auto connection = elsewhere->connect();
  const auto guardian = start("nodelay=1");
  const StepResult noted = guardian->track(connection.target);
  ASSERT_EQ(guardian->apply(noted.id).outcome, StepOutcome::kDone);
  elsewhere->hand_over(connection.target.fd);
  elsewhere->end();
  ASSERT_EQ(elsewhere->read(connection.target.fd, Option::kNodelay).value, 1);
  const Rollback rollback = guardian->finish(false);
  EXPECT_EQ(rollback.restored, 1u) << rollback.text();
  EXPECT_EQ(rollback.closed, 0u);
  EXPECT_EQ(elsewhere->read(connection.target.fd, Option::kNodelay).value, 0);
}

TEST_F(GuardianTest, LeavesWhatTheProcessSetMeanwhile) {
  const auto connection = victim_.connect();
  victim_.set(connection.target.fd, {Option::kSndbuf, 8192});
  const auto guardian = start("sndbuf=64KiB");
  const StepResult noted = guardian->track(connection.target);
  ASSERT_EQ(guardian->apply(noted.id).outcome, StepOutcome::kDone);
  victim_.set(connection.target.fd, {Option::kSndbuf, 20'000});
  const Rollback rollback = guardian->finish(false);
  EXPECT_EQ(rollback.own, 1u);
  EXPECT_EQ(victim_.read(connection.target.fd, Option::kSndbuf).value, 40'000);
}

TEST_F(GuardianTest, DoesNotTreatAnOptionThatTheProcessChangesItself) {
  const auto connection = victim_.connect();
  const auto guardian = start("cork=0");
  victim_.set(connection.target.fd, {Option::kCork, 1});
  const StepResult noted = guardian->track(connection.target);
  victim_.set(connection.target.fd, {Option::kCork, 0});
  EXPECT_EQ(guardian->apply(noted.id).outcome, StepOutcome::kOwn);
  EXPECT_EQ(guardian->finish(false).unchanged, 1u);
}

TEST_F(GuardianTest, KeepsTheChangeWhenItIsToldTo) {
  const auto connection = victim_.connect();
  const auto guardian = start("nodelay=1");
  ASSERT_EQ(guardian->apply(guardian->track(connection.target).id).outcome, StepOutcome::kDone);
  const Rollback rollback = guardian->finish(true);
  EXPECT_EQ(rollback.kept, 1u);
  EXPECT_FALSE(rollback.complete());
  EXPECT_EQ(nodelay(connection), 1);
}

TEST_F(GuardianTest, LeavesAloneWhatIsAlreadySo) {
  const auto connection = victim_.connect();
  victim_.set(connection.target.fd, {Option::kNodelay, 1});
  const auto guardian = start("nodelay=1");
  EXPECT_EQ(guardian->apply(guardian->track(connection.target).id).outcome, StepOutcome::kAlready);
  EXPECT_EQ(guardian->finish(false).unchanged, 1u);
  EXPECT_EQ(nodelay(connection), 1);
}

TEST_F(GuardianTest, RefusesBeforeAnyChangeWhatTheKernelWouldRefuse) {
  const auto connection = victim_.connect();
  const auto guardian = start("nodelay=1,rto_min_us=1");
  const StepResult noted = guardian->track(connection.target);
  EXPECT_NE(noted.outcome, StepOutcome::kDone);
  EXPECT_THAT(noted.text(), HasSubstr("rto_min_us"));
  EXPECT_EQ(nodelay(connection), 0);
}

TEST_F(GuardianTest, DoesNotTreatABufferThatHasGrownBeyondWhatItCouldBeGivenAgain) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can let a buffer grow beyond the limit";
  const auto connection = victim_.connect();
  settings_ = parse_settings("sndbuf=64KiB").value();
  UndoLog log(processes_, settings_);
  ASSERT_EQ(log.track(connection.target).outcome, StepOutcome::kDone);
  // As autotuning does it on a long fast path.
  victim_.set(connection.target.fd, {Option::kSndbuf, 64 << 20});
  victim_.set(connection.target.fd, {Option::kSndbuf, 0, true});
  const State grown = victim_.read(connection.target.fd, Option::kSndbuf);
  ASSERT_EQ(grown, (State{128 << 20, false}));
  StepResult result;
  std::thread([&] {
    testing::drop_capability(CAP_NET_ADMIN);  // this thread's only
    result = log.apply(0);
  }).join();
  EXPECT_EQ(result.outcome, StepOutcome::kNotRestorable) << result.text();
  EXPECT_THAT(result.text(), HasSubstr("CAP_NET_ADMIN"));
  EXPECT_EQ(victim_.read(connection.target.fd, Option::kSndbuf), grown);
  EXPECT_EQ(log.restore_all().unchanged, 1u);
}

TEST_F(GuardianTest, FindsNothingToRestoreWhenTheProcessHasEnded) {
  const auto connection = victim_.connect();
  const auto guardian = start("nodelay=1");
  ASSERT_EQ(guardian->apply(guardian->track(connection.target).id).outcome, StepOutcome::kDone);
  victim_.end();
  const Rollback rollback = guardian->finish(false);
  EXPECT_EQ(rollback.closed, 1u);
  EXPECT_TRUE(rollback.complete());
}

}  // namespace
}  // namespace tailward::treat
