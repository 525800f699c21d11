#include "plan/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/testing.h"

namespace tailward::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::in_pieces;

struct Outcome {
  std::vector<std::string> lines;
  std::string error;
  bool stopped = false;
};

Outcome read_all(ByteSource source) {
  LineReader reader(std::move(source));
  Outcome outcome;
  std::string_view line;
  while (true) {
    const Result<bool> more = reader.next(line);
    if (!more) outcome.error = more.error().message + " | " + more.error().hint;
    if (!more || !*more) break;
    outcome.lines.emplace_back(line);
    EXPECT_EQ(reader.number(), outcome.lines.size());
  }
  outcome.stopped = reader.stopped();
  return outcome;
}

TEST(LineReaderTest, GivesTheSameLinesHoweverTheBytesCome) {
  const std::string text =
      "\xef\xbb\xbf"
      "one\r\n\ntwo \nthree\r\r\nlast";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    EXPECT_THAT(read_all(in_pieces(text, piece)).lines,
                ElementsAre("one", "", "two ", "three\r", "last"))
        << "pieces of " << piece;
  }
}

TEST(LineReaderTest, GivesNoLineOfAnEmptySourceAndOneOfALoneLineEnd) {
  EXPECT_THAT(read_all(bytes_of("")).lines, ElementsAre());
  EXPECT_THAT(read_all(bytes_of("\n")).lines, ElementsAre(""));
  EXPECT_THAT(read_all(bytes_of("\xef\xbb\xbf")).lines, ElementsAre());
  EXPECT_THAT(read_all(bytes_of("ab")).lines, ElementsAre("ab"));
}

TEST(LineReaderTest, TakesALineOfOneMebibyteAndNoLongerOne) {
  const std::string longest(kLineMax, 'x');
  EXPECT_THAT(read_all(bytes_of("a\n" + longest + "\nb\n")).lines, ElementsAre("a", longest, "b"));
  EXPECT_THAT(read_all(bytes_of(longest)).lines, ElementsAre(longest));
  const std::string with_one_more = "a\n" + longest + "y\nb\n";
  for (const std::size_t piece : {std::size_t{1000}, SIZE_MAX}) {
    const Outcome outcome = read_all(in_pieces(with_one_more, piece));
    EXPECT_THAT(outcome.error, HasSubstr("line 2 is longer than 1 MiB"));
    EXPECT_THAT(outcome.lines, ElementsAre("a"));
  }
}

TEST(LineReaderTest, StopsReadingAnEndlessLineOnceItIsTooLong) {
  std::size_t given = 0;
  const Outcome outcome = read_all([&given](char* into, std::size_t size) -> Result<std::size_t> {
    std::fill_n(into, size, 'x');
    given += size;
    return size;
  });
  EXPECT_THAT(outcome.error, HasSubstr("line 1 is longer than 1 MiB"));
  EXPECT_LE(given, 3 * kLineMax);
}

TEST(LineReaderTest, RefusesUtf16) {
  for (const std::size_t piece : {std::size_t{1}, SIZE_MAX}) {
    EXPECT_THAT(read_all(in_pieces(std::string_view("\xff\xfe"
                                                    "1\0\n\0",
                                                    6),
                                   piece))
                    .error,
                HasSubstr("iconv"));
  }
}

TEST(LineReaderTest, DropsTheUnfinishedLineWhenItIsStopped) {
  const Outcome outcome = read_all(in_pieces("one\ntwo\nthr", 2, true));
  EXPECT_THAT(outcome.lines, ElementsAre("one", "two"));
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(outcome.error, "");
}

TEST(LineReaderTest, InflatesGzipByItself) {
  const std::string packed = testing::compressed("one\ntwo\n");
  LineReader reader(bytes_of(packed));
  std::string_view line;
  ASSERT_TRUE(*reader.next(line));
  EXPECT_EQ(line, "one");
  EXPECT_TRUE(reader.compressed());
}

}  // namespace
}  // namespace tailward::plan
