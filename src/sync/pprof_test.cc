#include "sync/pprof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <latch>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sync/modules.h"
#include "sync/profile.pb.h"
#include "sync/profiled_mutex.h"

namespace tailward::sync {

// With names of their own that the profile must show.
[[gnu::noinline]] void pprof_test_holder(ProfiledMutex& mutex, std::latch& held) {
  const std::lock_guard lock(mutex);
  held.count_down();
  while (mutex.blocked() == 0) std::this_thread::yield();
}

[[gnu::noinline]] void pprof_test_waiter(ProfiledMutex& mutex) {
  const std::lock_guard lock(mutex);
  asm volatile("");  // not a tail call
}

namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string unpacked(const std::string& packed) {
  constexpr int kGzipWindow = 15 + 16;
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, kGzipWindow), Z_OK);
  std::string bytes(std::size_t{1} << 22, '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  bytes.resize(stream.total_out);
  inflateEnd(&stream);
  return bytes;
}

pprof::Profile parsed(const std::string& packed) {
  pprof::Profile profile;
  EXPECT_TRUE(profile.ParseFromString(unpacked(packed)));
  return profile;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

const std::string& text(const pprof::Profile& profile, std::int64_t index) {
  return profile.string_table(static_cast<int>(index));
}

// Every reference has its target and every string its entry.
void expect_consistent(const pprof::Profile& profile) {
  ASSERT_GT(profile.string_table_size(), 0);
  EXPECT_EQ(profile.string_table(0), "");
  EXPECT_EQ(profile.sample_type_size(), 2);
  std::set<std::uint64_t> mappings;
  std::set<std::uint64_t> functions;
  std::set<std::uint64_t> locations;
  for (const auto& mapping : profile.mapping()) {
    EXPECT_TRUE(mappings.insert(mapping.id()).second);
    EXPECT_LT(mapping.memory_start(), mapping.memory_limit());
  }
  for (const auto& function : profile.function()) {
    EXPECT_TRUE(functions.insert(function.id()).second);
    EXPECT_NE(text(profile, function.name()), "");
  }
  for (const auto& location : profile.location()) {
    EXPECT_NE(location.id(), 0U);
    EXPECT_TRUE(locations.insert(location.id()).second);
    if (location.mapping_id() != 0) {
      ASSERT_TRUE(mappings.contains(location.mapping_id()));
      const auto& mapping = profile.mapping(static_cast<int>(location.mapping_id()) - 1);
      EXPECT_GE(location.address(), mapping.memory_start());
      EXPECT_LT(location.address(), mapping.memory_limit());
    }
    for (const auto& line : location.line()) EXPECT_TRUE(functions.contains(line.function_id()));
  }
  for (const auto& sample : profile.sample()) {
    EXPECT_EQ(sample.value_size(), 2);
    EXPECT_GT(sample.location_id_size(), 0);
    for (const std::uint64_t id : sample.location_id()) EXPECT_TRUE(locations.contains(id));
  }
}

std::vector<std::string> functions_of(const pprof::Profile& profile, const pprof::Sample& sample) {
  std::vector<std::string> names;
  for (const std::uint64_t id : sample.location_id()) {
    for (const auto& line : profile.location(static_cast<int>(id) - 1).line()) {
      const auto& function = profile.function(static_cast<int>(line.function_id()) - 1);
      names.push_back(text(profile, function.name()));
    }
  }
  return names;
}

std::vector<std::string> functions_of(const pprof::Profile& profile) {
  std::vector<std::string> names;
  for (const auto& function : profile.function()) names.push_back(text(profile, function.name()));
  return names;
}

struct Sums {
  std::int64_t contentions = 0;
  std::int64_t wait_ns = 0;
};

Sums sums_of(const pprof::Profile& profile) {
  Sums sums;
  for (const auto& sample : profile.sample()) {
    sums.contentions += sample.value(0);
    sums.wait_ns += sample.value(1);
  }
  return sums;
}

class PprofTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("tailward-pprof-") + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void contend(int times) {
    for (int i = 0; i < times; ++i) {
      std::latch held(1);
      std::thread holder([&] { pprof_test_holder(mutex_, held); });
      held.wait();
      std::thread waiter([this] { pprof_test_waiter(mutex_); });
      holder.join();
      waiter.join();
    }
  }

  ContentionProfile profile_{{.sample_every = 1}};
  ProfiledMutex mutex_{profile_};
  fs::path folder_;
};

TEST_F(PprofTest, HasTheSampleTypesOfAMutexProfile) {
  const auto bytes = pprof_bytes(profile_.snapshot());
  ASSERT_TRUE(bytes);
  const pprof::Profile profile = parsed(*bytes);
  expect_consistent(profile);
  EXPECT_EQ(text(profile, profile.sample_type(0).type()), "contentions");
  EXPECT_EQ(text(profile, profile.sample_type(0).unit()), "count");
  EXPECT_EQ(text(profile, profile.sample_type(1).type()), "delay");
  EXPECT_EQ(text(profile, profile.sample_type(1).unit()), "nanoseconds");
  EXPECT_EQ(text(profile, profile.period_type().type()), "contentions");
  EXPECT_EQ(profile.period(), 1);
  EXPECT_EQ(profile.sample_size(), 0);
  EXPECT_GT(profile.time_nanos(), 0);
}

TEST_F(PprofTest, NamesTheHolderAndSumsToTheExactWait) {
  contend(3);
  const ContentionSnapshot snapshot = profile_.snapshot();
  const auto bytes = pprof_bytes(snapshot, ContentionView::kHolders);
  ASSERT_TRUE(bytes);
  const pprof::Profile profile = parsed(*bytes);
  expect_consistent(profile);
  EXPECT_EQ(sums_of(profile).wait_ns, snapshot.totals.wait.count());
  EXPECT_EQ(sums_of(profile).contentions,
            static_cast<std::int64_t>(snapshot.totals.contended_holds));
  EXPECT_THAT(functions_of(profile, profile.sample(0)),
              Contains(HasSubstr("tailward::sync::pprof_test_holder")));
  EXPECT_THAT(functions_of(profile), Not(Contains(HasSubstr("pprof_test_waiter"))));
  EXPECT_THAT(functions_of(profile), Contains(HasSubstr("hand-over")));
}

TEST_F(PprofTest, NamesTheWaiterInTheOtherView) {
  contend(2);
  const ContentionSnapshot snapshot = profile_.snapshot();
  const auto bytes = pprof_bytes(snapshot, ContentionView::kWaiters);
  ASSERT_TRUE(bytes);
  const pprof::Profile profile = parsed(*bytes);
  expect_consistent(profile);
  EXPECT_EQ(sums_of(profile).wait_ns, snapshot.totals.wait.count());
  EXPECT_EQ(sums_of(profile).contentions, static_cast<std::int64_t>(snapshot.totals.contentions));
  EXPECT_THAT(functions_of(profile), Contains(HasSubstr("tailward::sync::pprof_test_waiter")));
  EXPECT_THAT(functions_of(profile), Not(Contains(HasSubstr("hand-over"))));
}

TEST_F(PprofTest, GivesSourceLinesWithInlinedCallsInside) {
  contend(1);
  const auto bytes = pprof_bytes(profile_.snapshot(), ContentionView::kWaiters);
  ASSERT_TRUE(bytes);
  const pprof::Profile profile = parsed(*bytes);
  bool found = false;
  for (const auto& location : profile.location()) {
    if (location.line_size() == 0) continue;
    const auto& outer = location.line(location.line_size() - 1);
    const auto& function = profile.function(static_cast<int>(outer.function_id()) - 1);
    if (text(profile, function.name()).find("pprof_test_waiter") == std::string::npos) continue;
    found = true;
    EXPECT_THAT(text(profile, function.filename()), HasSubstr("pprof_test.cc"));
    EXPECT_GE(outer.line(), function.start_line());
    EXPECT_LE(outer.line(), function.start_line() + 3);
  }
  EXPECT_TRUE(found);
}

TEST_F(PprofTest, ShowsWhatHasNoStackUnderANameInBrackets) {
  ContentionSnapshot snapshot;
  snapshot.sample_every = 10;
  snapshot.holders.rows.push_back({{}, 1, 10, Duration{100}});
  snapshot.holders.lost = {{}, 2, 20, Duration{200}};
  const auto bytes = pprof_bytes(snapshot);
  ASSERT_TRUE(bytes);
  const pprof::Profile profile = parsed(*bytes);
  expect_consistent(profile);
  EXPECT_EQ(profile.period(), 10);
  EXPECT_EQ(sums_of(profile).contentions, 30);
  EXPECT_EQ(sums_of(profile).wait_ns, 300);
  EXPECT_THAT(functions_of(profile), Contains("[unknown stack]"));
  EXPECT_THAT(functions_of(profile), Contains("[stacks beyond the limit]"));
}

TEST_F(PprofTest, LeavesAddressesThatNobodyKnowsWithoutAName) {
  ContentionSnapshot snapshot;
  snapshot.sample_every = 1;
  snapshot.holders.rows.push_back({{0x1234, 0x5678}, 1, 1, Duration{100}});
  const auto bytes = pprof_bytes(snapshot);
  ASSERT_TRUE(bytes);
  const pprof::Profile profile = parsed(*bytes);
  expect_consistent(profile);
  ASSERT_EQ(profile.location_size(), 2);
  EXPECT_EQ(profile.location(0).address(), 0x1233U);  // within the call
  EXPECT_EQ(profile.location(0).mapping_id(), 0U);
  EXPECT_EQ(profile.location(0).line_size(), 0);
}

TEST_F(PprofTest, WritesAFileThatCanBeReadBack) {
  contend(1);
  const fs::path path = folder_ / "mutex.pb.gz";
  const auto written = write_pprof(profile_, path.string());
  ASSERT_TRUE(written) << written.error().message;
  expect_consistent(parsed(read_file(path)));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);  // no temporary file is left
}

TEST_F(PprofTest, ReplacesAnOldFileBehindItsLink) {
  const fs::path path = folder_ / "mutex.pb.gz";
  std::ofstream(path) << "old";
  fs::create_symlink("mutex.pb.gz", folder_ / "link");
  ASSERT_TRUE(write_pprof(profile_, (folder_ / "link").string()));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  expect_consistent(parsed(read_file(path)));
}

TEST_F(PprofTest, SaysWhyAFileCannotBeWrittenAndLeavesNothing) {
  const auto missing = write_pprof(profile_, (folder_ / "none" / "mutex.pb.gz").string());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kInvalid);
  EXPECT_THAT(missing.error().message, HasSubstr("mutex.pb.gz"));
  const auto folder = write_pprof(profile_, folder_.string());
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().kind, ErrorKind::kInvalid);
  const auto full = write_pprof(profile_, "/dev/full");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind, ErrorKind::kOverloaded);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST(ModulesTest, BeginWithTheProgramAndHoldItsCode) {
  const std::vector<Module> modules = loaded_modules();
  ASSERT_FALSE(modules.empty());
  EXPECT_EQ(fs::path(modules[0].path).filename(), "sync_test");
  const auto here = reinterpret_cast<std::uintptr_t>(&pprof_test_waiter);
  EXPECT_GE(here, modules[0].start);
  EXPECT_LT(here, modules[0].limit);
  EXPECT_EQ(modules[0].build_id.size() % 2, 0U);
}

}  // namespace
}  // namespace tailward::sync
