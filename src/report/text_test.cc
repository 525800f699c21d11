#include "report/text.h"

#include <gtest/gtest.h>

namespace tailward::report {
namespace {

using Lines = std::vector<std::string>;

TEST(PrintableTest, LetsOrdinaryTextPass) {
  EXPECT_EQ(printable("12 µs ≤ 1 ms – ж 漢 🙂"), "12 µs ≤ 1 ms – ж 漢 🙂");
  EXPECT_EQ(printable("two\nlines\tand\ra tab"), "two lines and a tab");
}

TEST(PrintableTest, ReplacesWhatMovesTheCursorOrTurnsTextAround) {
  EXPECT_EQ(printable("\x1b[31mred\x07"), "\uFFFD[31mred\uFFFD");
  EXPECT_EQ(printable("\u009b31m"), "\uFFFD31m");
  EXPECT_EQ(printable("\u202Eevil\u2066"), "\uFFFDevil\uFFFD");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\uFFFDb");
}

TEST(PrintableTest, ReplacesEveryByteThatIsNotUtf8) {
  EXPECT_EQ(printable("\xff"), "\uFFFD");
  EXPECT_EQ(printable("\xc0\xaf"), "\uFFFD\uFFFD");                      // overlong
  EXPECT_EQ(printable("\xe0\x80\xaf"), "\uFFFD\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");            // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // beyond the last
  EXPECT_EQ(printable("caf\xc3"), "caf\uFFFD");                          // cut off
  EXPECT_EQ(printable("\xc3(").size(), 4u);
}

TEST(DisplayWidthTest, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("µ≤–"), 3);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("漢字"), 4);
  EXPECT_EQ(display_width(""), 0);
}

TEST(WrapTest, BreaksAtBlanks) {
  EXPECT_EQ(wrap("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap("one two", 3), (Lines{"one", "two"}));
  EXPECT_EQ(wrap("", 10), (Lines{""}));
}

TEST(WrapTest, BreaksAWordThatIsTooLongAnywhere) {
  EXPECT_EQ(wrap("abcdefgh", 3), (Lines{"abc", "def", "gh"}));
  EXPECT_EQ(wrap("ab cdefgh i", 3), (Lines{"ab", "cde", "fgh", "i"}));
  EXPECT_EQ(wrap("漢字漢", 4), (Lines{"漢字", "漢"}));
}

TEST(WrapTest, EndsEvenWhereNothingFits) { EXPECT_EQ(wrap("漢字", 1), (Lines{"漢", "字"})); }

TEST(WrapTest, KeepsTheIndentOfAName) {
  EXPECT_EQ(wrap("  published", 20), (Lines{"  published"}));
  EXPECT_EQ(wrap("  published", 10), (Lines{"published"}));
}

TEST(HtmlEscapedTest, EscapesMarkupAndQuotes) {
  EXPECT_EQ(html_escaped("<a href=\"x\" b='y'>&amp;"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
  EXPECT_EQ(html_escaped("two\nlines \x1b \xff"), "two\nlines \uFFFD \uFFFD");
}

}  // namespace
}  // namespace tailward::report
