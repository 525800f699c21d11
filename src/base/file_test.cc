#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tailward {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string name = testing::TempDir() + "tailward-file-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~FileTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static std::string content(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  static void put(const std::string& file, const std::string& text) { std::ofstream(file) << text; }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  std::string folder_;
};

// Runs as an ordinary user meanwhile, as root may write anywhere.
class WithoutPrivilege {
 public:
  WithoutPrivilege() : user_(::geteuid()) {
    constexpr uid_t kNobody = 65534;
    if (user_ == 0) worked_ = ::seteuid(kNobody) == 0;
  }
  ~WithoutPrivilege() {
    if (user_ == 0 && worked_ && ::seteuid(user_) != 0) std::abort();
  }
  [[nodiscard]] bool worked() const { return worked_; }

 private:
  uid_t user_;
  bool worked_ = true;
};

TEST_F(FileTest, WritesANewFileWithTheUsualPermissions) {
  const mode_t before = ::umask(027);
  ASSERT_TRUE(write_file_atomically(path("new.json"), "{}\n").has_value());
  ::umask(before);
  EXPECT_EQ(content(path("new.json")), "{}\n");
  EXPECT_EQ(files(), 1u);
  struct stat info {};
  ASSERT_EQ(::stat(path("new.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0640u);
}

TEST_F(FileTest, ReplacesAFileAndKeepsItsPermissions) {
  put(path("old"), "a longer old content");
  ASSERT_EQ(::chmod(path("old").c_str(), 0604), 0);
  ASSERT_TRUE(write_file_atomically(path("old"), "new").has_value());
  EXPECT_EQ(content(path("old")), "new");
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(fs::status(path("old")).permissions(), static_cast<fs::perms>(0604));
}

TEST_F(FileTest, FollowsASymbolicLink) {
  put(path("real"), "old");
  fs::create_symlink("real", path("link"));
  ASSERT_TRUE(write_file_atomically(path("link"), "new").has_value());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content(path("real")), "new");
}

TEST_F(FileTest, WritesABigFileWhole) {
  const std::string big(5 << 20, 'x');
  ASSERT_TRUE(write_file_atomically(path("big"), big).has_value());
  EXPECT_EQ(fs::file_size(path("big")), big.size());
}

TEST_F(FileTest, SaysWhatToDoWhereTheFolderIsMissing) {
  const Result<void> result = write_file_atomically(path("no/such/file"), "x");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(result.error().hint, "make the folder " + path("no/such") + " first");
}

TEST_F(FileTest, RefusesAFolder) {
  const Result<void> result = write_file_atomically(folder_, "x");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(result.error().hint, "give the name of a file, not of a folder");
}

TEST_F(FileTest, LeavesEverythingAsItWasWhereWritingIsNotAllowed) {
  put(path("old"), "old");
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_exec);
  Result<void> result;
  {
    const WithoutPrivilege unprivileged;
    if (!unprivileged.worked()) GTEST_SKIP() << "cannot give up root here";
    result = write_file_atomically(path("old"), "new");
  }
  fs::permissions(folder_, fs::perms::owner_all);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kDenied);
  EXPECT_NE(result.error().hint, "");
  EXPECT_EQ(content(path("old")), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileTest, LeavesNoHalfWrittenFileWhereSpaceRunsOut) {
  // A limit on the size of files makes write() fail half-way, as a full disk does.
  put(path("old"), "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 4096;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Result<void> result = write_file_atomically(path("old"), std::string(100'000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kOverloaded);
  EXPECT_EQ(result.error().hint, "free some space, or write to another disk");
  EXPECT_EQ(content(path("old")), "old");
  EXPECT_EQ(files(), 1u);
}

TEST(FileDeviceTest, WritesIntoADeviceAndNeverReplacesIt) {
  EXPECT_TRUE(write_file_atomically("/dev/null", "x").has_value());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const Result<void> result = write_file_atomically("/dev/full", "x");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kOverloaded);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

}  // namespace
}  // namespace tailward
