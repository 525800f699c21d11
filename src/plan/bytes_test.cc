#include "plan/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "plan/testing.h"

namespace tailward::plan {
namespace {

using testing::compressed;
using ::testing::HasSubstr;
using testing::in_pieces;

struct Outcome {
  std::string text;
  std::string error;
  bool compressed = false;
};

Outcome unpack(std::string_view bytes, std::size_t piece = SIZE_MAX, std::size_t room = 1000) {
  Unpacker unpacker(in_pieces(bytes, piece));
  Outcome outcome;
  std::string buffer(room, '\0');
  while (true) {
    const Result<std::size_t> got = unpacker.read(buffer.data(), buffer.size());
    if (!got) outcome.error = got.error().message + " | " + got.error().hint;
    if (!got || *got == 0) break;
    outcome.text.append(buffer, 0, *got);
  }
  outcome.compressed = unpacker.compressed();
  return outcome;
}

std::string some_text(std::size_t lines) {
  Rng rng(1);
  std::string text;
  for (std::size_t i = 0; i < lines; ++i) text += std::to_string(rng.below(100'000)) + "\n";
  return text;
}

TEST(UnpackerTest, PassesPlainBytesOnAsTheyAre) {
  const std::string text = some_text(100'000);
  for (const std::size_t piece : {std::size_t{1000}, SIZE_MAX}) {
    const Outcome outcome = unpack(text, piece);
    EXPECT_EQ(outcome.text, text);
    EXPECT_EQ(outcome.error, "");
    EXPECT_FALSE(outcome.compressed);
  }
  EXPECT_EQ(unpack("").text, "");
  EXPECT_EQ(unpack("\x1f").text, "\x1f");
}

TEST(UnpackerTest, InflatesGzipHoweverItComes) {
  const std::string text = some_text(20'000);
  const std::string packed = compressed(text);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, SIZE_MAX}) {
    for (const std::size_t room : {std::size_t{3}, std::size_t{100'000}}) {
      const Outcome outcome = unpack(packed, piece, room);
      EXPECT_EQ(outcome.error, "");
      EXPECT_TRUE(outcome.text == text) << "pieces of " << piece << ", room for " << room;
      EXPECT_TRUE(outcome.compressed);
    }
  }
}

TEST(UnpackerTest, ReadsAllMembersAndThePaddingAfterThem) {
  const std::string packed = compressed("one\n") + compressed("") + compressed("two\n");
  for (const std::size_t piece : {std::size_t{1}, SIZE_MAX}) {
    EXPECT_EQ(unpack(packed, piece).text, "one\ntwo\n");
    const Outcome padded = unpack(packed + std::string(1000, '\0'), piece);
    EXPECT_EQ(padded.text, "one\ntwo\n");
    EXPECT_EQ(padded.error, "");
  }
}

TEST(UnpackerTest, SaysThatDataEndInTheMiddleWhereverTheyDo) {
  const std::string packed = compressed("one\n") + compressed(some_text(10));
  const std::size_t first = compressed("one\n").size();
  for (std::size_t cut = 2; cut < packed.size(); ++cut) {
    if (cut == first) continue;  // a whole member
    const std::string& error = unpack(packed.substr(0, cut)).error;
    // One byte of a second member's two could be anything.
    const char* expected = cut == first + 1 ? "not gzip" : "end in the middle";
    EXPECT_THAT(error, HasSubstr(expected)) << "cut after " << cut;
  }
}

TEST(UnpackerTest, RefusesWhatFollowsTheDataAndSaysWhere) {
  const std::string packed = compressed("one\n");
  const Outcome outcome = unpack(packed + "two\n");
  EXPECT_THAT(outcome.error, HasSubstr("at byte " + std::to_string(packed.size() + 1)));
  EXPECT_EQ(outcome.text, "one\n");
  EXPECT_THAT(unpack(packed + std::string(300'000, '\0') + "x").error,
              HasSubstr("at byte " + std::to_string(packed.size() + 300'001)));
}

TEST(UnpackerTest, NoticesEveryDamagedByteOfTheDataAndTheirChecksum) {
  const std::string packed = compressed(some_text(20));
  constexpr std::size_t kHead = 10;
  for (std::size_t at = kHead; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_NE(unpack(damaged).error, "") << "byte " << at;
  }
}

TEST(UnpackerTest, SaysTheSameOfDamageHoweverTheDataCome) {
  const std::string packed = compressed("one\n") + compressed(some_text(200));
  for (std::size_t at = 0; at < packed.size(); ++at) {
    for (const int bit : {0x01, 0x10, 0x80}) {
      std::string damaged = packed;
      damaged[at] = static_cast<char>(damaged[at] ^ bit);
      const Outcome whole = unpack(damaged);
      for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{300}}) {
        const Outcome cut = unpack(damaged, piece);
        EXPECT_EQ(cut.error, whole.error) << "byte " << at << ", pieces of " << piece;
        EXPECT_TRUE(cut.text == whole.text) << "byte " << at << ", pieces of " << piece;
      }
    }
  }
}

TEST(UnpackerTest, NamesTheCommandForOtherCompressions) {
  EXPECT_THAT(unpack(std::string("\x28\xb5\x2f\xfd") + "rest").error, HasSubstr("zstd -dc"));
  EXPECT_THAT(unpack(std::string("\xfd") + "7zXZrest").error, HasSubstr("xz -dc"));
  EXPECT_THAT(unpack("BZh91AY&SY").error, HasSubstr("bzip2 -dc"));
}

TEST(UnpackerTest, PassesTheSourcesErrorOn) {
  Unpacker unpacker([](char*, std::size_t) -> Result<std::size_t> {
    return fail(ErrorKind::kDenied, "the disk is on fire");
  });
  char buffer[10];
  const Result<std::size_t> got = unpacker.read(buffer, sizeof buffer);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, "the disk is on fire");
}

}  // namespace
}  // namespace tailward::plan
