#include "plan/read.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/testing.h"

namespace tailward::plan {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::compressed;
using testing::error_of;
using ::testing::HasSubstr;
using testing::HdrWriter;
using testing::in_pieces;
using testing::read;
using ::testing::StartsWith;

std::string times(int count, std::string_view line) {
  std::string text;
  for (int i = 0; i < count; ++i) text += line;
  return text;
}

// The longest latency that was read, which a histogram keeps exactly; an error as a failure.
Duration longest(const Result<Reading>& reading) {
  EXPECT_TRUE(reading) << error_of(reading);
  return reading ? reading->samples.histogram.max() : Duration{-1};
}

TEST(ReadListTest, TakesNumbersAsMillisecondsUnlessToldOtherwise) {
  const Result<Reading> reading = read("# comment\n1\n2.5\n\n3e1\n");
  EXPECT_EQ(longest(reading), milliseconds(30));
  EXPECT_EQ(reading->format, "list");
  EXPECT_EQ(reading->understood, "one latency per line in ms");
  EXPECT_EQ(reading->lines, 5u);
  EXPECT_EQ(reading->latencies, 3u);
  EXPECT_EQ(reading->skipped.lines, 0u);
  EXPECT_EQ(longest(read("1\n2\n", {.unit = Unit::kUs})), microseconds(2));
  EXPECT_THAT(read("1\n2\n", {.unit = Unit::kUs})->understood, HasSubstr("in us"));
}

TEST(ReadListTest, TakesUnitsOnAllLinesOrOnNone) {
  const Result<Reading> reading = read("12.5ms\n800us\n1.2s\n");
  EXPECT_EQ(longest(reading), milliseconds(1200));
  EXPECT_THAT(reading->understood, HasSubstr("each with its unit"));
  EXPECT_THAT(error_of(read("1ms\n2ms\n3\n")),
              HasSubstr("line 3: '3' has no unit, but line 1 has one"));
  EXPECT_THAT(error_of(read("1\n2\n3s\n")),
              HasSubstr("line 3: '3s' has a unit, but line 1 has none"));
  // A line that is skipped anyway settles nothing.
  EXPECT_TRUE(read("-1\n" + times(20, "1ms\n")));
}

TEST(ReadListTest, CountsWhatItSkipsAndSaysWhyAndWhere) {
  const Result<Reading> reading = read(times(50, "1\n") + "abc\nnan\n-3\n-\n-5\n");
  ASSERT_TRUE(reading) << error_of(reading);
  EXPECT_EQ(reading->latencies, 50u);
  EXPECT_EQ(reading->skipped.lines, 5u);
  EXPECT_EQ(reading->skipped.first_line, 51u);
  EXPECT_EQ(describe(reading->skipped),
            "5 gave none (1 has no value, 1 is not a number, 1 is not a finite number, 2 is "
            "negative; first line 51: 'abc' is not a number)");
}

TEST(ReadListTest, RefusesALogOfWhichATenthIsSkipped) {
  EXPECT_TRUE(read(times(90, "1\n") + times(10, "x\n")));
  EXPECT_THAT(error_of(read(times(89, "1\n") + times(10, "x\n"))),
              HasSubstr("of 99 lines 10 gave none (10 is not a number; first line 90: 'x'"));
}

TEST(ReadListTest, NeverPassesNothingOffAsSomething) {
  EXPECT_THAT(error_of(read("")), HasSubstr("empty"));
  EXPECT_THAT(error_of(read("\n\n \n# only a comment\n")), HasSubstr("nothing but empty lines"));
  EXPECT_THAT(error_of(read("nan\n", {.format = "list"})), HasSubstr("no latency in 1 line"));
  EXPECT_THAT(error_of(read("0\n0\n0\n")), HasSubstr("all of the 3 latencies are 0"));
  EXPECT_EQ(read("5\n")->latencies, 1u);
}

TEST(ReadListTest, KnowsHowFinelyTheLogTellsTimesApart) {
  EXPECT_EQ(read("1\n2\n3\n")->samples.resolution, milliseconds(1));
  EXPECT_EQ(read("10\n0\n30\n")->samples.resolution, milliseconds(10));
  EXPECT_EQ(read("1.5\n2\n")->samples.resolution, microseconds(500));
  EXPECT_EQ(read("1.000001\n2\n")->samples.resolution, Duration{1});
}

TEST(ReadTest, GivesWhatThereIsWhenItIsStopped) {
  const Result<Reading> reading = read_latencies(in_pieces("1\n2\n3\n4", 1, true), {});
  ASSERT_TRUE(reading) << error_of(reading);
  EXPECT_TRUE(reading->partial);
  EXPECT_EQ(reading->latencies, 3u);
  const Result<Reading> nothing = read_latencies(in_pieces("", 1, true), {});
  EXPECT_THAT(error_of(nothing), HasSubstr("stopped before anything was read"));
}

TEST(ReadTest, ReadsGzipAndSaysSo) {
  const Result<Reading> reading = read(compressed(times(1000, "7\n")));
  EXPECT_EQ(longest(reading), milliseconds(7));
  EXPECT_EQ(reading->understood, "one latency per line in ms, gzip");
  const std::string packed = compressed(times(1000, "7\n"));
  EXPECT_THAT(error_of(read(packed.substr(0, packed.size() - 3))), HasSubstr("end in the middle"));
}

TEST(ReadTest, RefusesBinaryDataWithThePlace) {
  EXPECT_THAT(error_of(read(std::string_view("12\n1\0003\n", 7))),
              HasSubstr("byte 0x00 in line 2, column 2"));
  for (const char* format : {"auto", "list", "csv", "nginx", "envoy", "hdr"}) {
    EXPECT_THAT(error_of(read("\x7f"
                              "ELF\x02\x01",
                              {.format = format})),
                HasSubstr("binary data"))
        << format;
  }
}

TEST(ReadTest, SaysThatItDoesNotKnowAFormat) {
  EXPECT_THAT(error_of(read("1\n", {.format = "xml"})), HasSubstr("no format 'xml' | --format is"));
  EXPECT_THAT(error_of(read("1\n", {.format = "list:x"})), HasSubstr("no format"));
  EXPECT_THAT(error_of(read("hello world\n")), HasSubstr("what is this? The first line is 'hello"));
  EXPECT_THAT(error_of(read("{\"ms\": 5}\n")), HasSubstr("jq -r"));
  EXPECT_THAT(error_of(read("1\n2\n", {.format = "list", .column = "a"})), HasSubstr("no columns"));
}

// ---- CSV --------------------------------------------------------------------------------------

TEST(ReadCsvTest, FindsAColumnByNameOrNumber) {
  const std::string text = "time,latency_ms,code\n1,12.5,200\n2,99,500\n";
  for (const char* column : {"latency_ms", "2"}) {
    const Result<Reading> reading = read(text, {.column = column});
    EXPECT_EQ(longest(reading), milliseconds(99));
    EXPECT_EQ(reading->latencies, 2u);
    EXPECT_EQ(reading->understood, "CSV, column 2 'latency_ms' in ms");
  }
  EXPECT_EQ(longest(read("7;8\n9;10\n", {.column = "2"})), milliseconds(10));
  EXPECT_EQ(longest(read("a\tb\n9\t10\n", {.column = "b"})), milliseconds(10));
}

TEST(ReadCsvTest, NeedsNoColumnWhereThereIsOne) {
  EXPECT_EQ(longest(read("duration\n5\n6\n")), milliseconds(6));
}

TEST(ReadCsvTest, ListsTheColumnsThereAre) {
  const std::string text = "time,latency,\"a,b\"\n1,12.5,200\n";
  EXPECT_THAT(error_of(read(text)), HasSubstr("'time', 'latency', 'a,b'"));
  EXPECT_THAT(error_of(read(text, {.column = "latenci"})),
              HasSubstr("no column 'latenci' | the columns are 'time', 'latency', 'a,b'"));
  EXPECT_THAT(error_of(read(text, {.column = "4"})), HasSubstr("no column '4'"));
  EXPECT_THAT(error_of(read(text, {.column = "0"})), HasSubstr("no column '0'"));
  EXPECT_THAT(error_of(read("1,2\n3,4\n")),
              HasSubstr("there is no header; the columns are 1 to 2"));
}

TEST(ReadCsvTest, ReadsQuotedFieldsWithSeparatorsQuotesAndLineEnds) {
  const std::string text =
      "name,ms\n"
      "\"a,\"\"b\"\"\",\"1\"\n"
      "\"two\nlines, of \"\"text\"\"\n\",2\n"
      "5\" disk,3\n"
      "\"\",4\n";
  const Result<Reading> reading = read(text, {.column = "ms"});
  ASSERT_TRUE(reading) << error_of(reading);
  EXPECT_EQ(reading->latencies, 4u);
  EXPECT_EQ(reading->samples.histogram.max(), milliseconds(4));
  EXPECT_EQ(reading->lines, 7u);
}

TEST(ReadCsvTest, SaysWhereQuotesWereOpenedThatNeverClose) {
  EXPECT_THAT(error_of(read("name,ms\na,1\n\"b,2\nc,3\n", {.column = "ms"})),
              HasSubstr("the quotes that line 3 opens are never closed"));
  const std::string endless = "name,ms\n\"b,2\n" + times(40'000, std::string(40, 'x') + "\n");
  EXPECT_THAT(error_of(read(endless, {.format = "csv", .column = "ms"})),
              HasSubstr("the quotes that line 2 opens are never closed"));
}

TEST(ReadCsvTest, TakesTheUnitFromTheColumnsName) {
  const auto in_unit = [](std::string_view name, std::optional<Unit> unit = {}) {
    return longest(read(fmt::format("a,{}\nx,2\ny,2000\n", name),
                        {.unit = unit, .column = std::string(name)}));
  };
  EXPECT_EQ(in_unit("latency"), seconds(2));
  EXPECT_EQ(in_unit("latency_us"), milliseconds(2));
  EXPECT_EQ(in_unit("duration (ns)"), microseconds(2));
  EXPECT_EQ(in_unit("time.s"), seconds(2000));
  EXPECT_EQ(in_unit("elapsedMs"), seconds(2));
  EXPECT_EQ(in_unit("latencyMicros"), milliseconds(2));
  EXPECT_EQ(in_unit("seconds"), seconds(2000));
  EXPECT_EQ(in_unit("milliseconds"), seconds(2));
  EXPECT_EQ(in_unit("items"), seconds(2));
  EXPECT_EQ(in_unit("latency_us", Unit::kMs), seconds(2));
}

TEST(ReadCsvTest, SkipsShortRecords) {
  const Result<Reading> reading = read("a,b\n" + times(20, "1,2\n") + "1\n", {.column = "b"});
  ASSERT_TRUE(reading) << error_of(reading);
  EXPECT_EQ(reading->skipped.lines, 1u);
  EXPECT_THAT(reading->skipped.first_why, HasSubstr("line 22"));
}

// ---- access logs ------------------------------------------------------------------------------

constexpr std::string_view kCombined =
    "10.0.0.1 - - [10/Oct/2025:13:55:36 +0000] \"GET /a?b=1 HTTP/1.1\" 200 512 \"-\" \"curl/8.1\"";

TEST(ReadNginxTest, FindsTheRequestTimeWherePeoplePutIt) {
  for (const std::string_view tail :
       {" 0.125", " \"0.125\"", " rt=0.125", " rt=0.125 uct=\"0.001\" urt=\"0.100\"",
        " request_time=0.125", " request_time:0.125", " \"-\" rt=0.125 0.100"}) {
    const Result<Reading> reading =
        read(times(20, std::string(kCombined) + std::string(tail) + "\n"));
    EXPECT_EQ(longest(reading), milliseconds(125)) << tail;
    EXPECT_EQ(reading->format, "nginx");
    EXPECT_THAT(reading->understood, StartsWith("nginx access log, $request_time"));
    EXPECT_THAT(reading->understood, HasSubstr("in s"));
  }
}

TEST(ReadNginxTest, FallsBackToTheUpstreamsTime) {
  const Result<Reading> reading = read(times(20, std::string(kCombined) + " urt=\"0.100\"\n"));
  EXPECT_EQ(longest(reading), milliseconds(100));
  EXPECT_THAT(reading->understood, HasSubstr("$upstream_response_time"));
}

TEST(ReadNginxTest, AddsTheTimesOfServersThatWereAskedInTurn) {
  const std::string line = std::string(kCombined) + " urt=\"0.100, 0.250 : -, 0.050\"\n";
  EXPECT_EQ(longest(read(times(20, line))), milliseconds(400));
}

TEST(ReadNginxTest, SaysThatTheDefaultFormatHasNoTime) {
  EXPECT_THAT(error_of(read(times(20, std::string(kCombined) + "\n"))),
              HasSubstr("no times: nginx's default formats do not write them | add $request_time"));
}

TEST(ReadNginxTest, AsksWhichOfTwoTimesAtTheEnd) {
  EXPECT_THAT(error_of(read(times(20, std::string(kCombined) + " 0.125 0.100\n"))),
              HasSubstr("end in two times"));
}

TEST(ReadNginxTest, TakesTheServersOwnFormat) {
  const std::string format =
      "nginx:$remote_addr - - [$time_local] \"$request\" $status $body \"$ref\" \"$agent\" "
      "$request_time $upstream_response_time";
  const std::string text = times(20, std::string(kCombined) + " 0.125 0.100, 0.010\n");
  EXPECT_EQ(longest(read(text, {.format = format})), milliseconds(125));
  EXPECT_EQ(longest(read(text, {.format = format, .column = "upstream_response_time"})),
            milliseconds(110));
  EXPECT_EQ(longest(read(text, {.format = format, .column = "$upstream_response_time"})),
            milliseconds(110));
  EXPECT_THAT(error_of(read(text, {.format = format, .column = "nothing"})),
              HasSubstr("no 'nothing' | its variables are remote_addr, time_local"));
  EXPECT_THAT(error_of(read(text, {.format = "nginx:$a $b"})), HasSubstr("no $request_time"));
  EXPECT_THAT(error_of(read(text, {.format = "nginx:"})), HasSubstr("no variable"));
  EXPECT_THAT(error_of(read(text, {.format = "nginx:[$request_time]"})),
              HasSubstr("20 is not of this form"));
}

TEST(ReadNginxTest, SkipsRequestsWithoutATime) {
  const std::string text =
      times(30, std::string(kCombined) + " 0.125\n") + std::string(kCombined) + " -\n";
  const Result<Reading> reading = read(text);
  ASSERT_TRUE(reading) << error_of(reading);
  EXPECT_EQ(reading->latencies, 30u);
  EXPECT_EQ(reading->skipped.by_reason[static_cast<std::size_t>(Skip::kNoValue)], 1u);
}

constexpr std::string_view kEnvoy =
    "[2025-04-15T20:17:00.310Z] \"POST /api/v1/locations HTTP/2\" 204 - 154 0 226 100 "
    "\"10.0.35.28\" \"nsq2http\" \"cc21d9b0\" \"locations\" \"tcp://10.0.2.1:80\"\n";
constexpr std::string_view kIstio =
    "[2025-04-15T20:17:00.310Z] \"GET /s HTTP/1.1\" 200 - via_upstream - \"-\" 0 135 4 3 \"-\" "
    "\"curl/8\" \"84961386\" \"httpbin:8000\" \"127.0.0.1:80\" inbound 127.0.0.1:20854 - default\n";

TEST(ReadEnvoyTest, KnowsTheDefaultFormatAndIstios) {
  const Result<Reading> usual = read(times(20, kEnvoy));
  EXPECT_EQ(longest(usual), milliseconds(226));
  EXPECT_EQ(usual->format, "envoy");
  EXPECT_EQ(usual->understood, "Envoy access log, %DURATION% in ms");
  EXPECT_EQ(longest(read(times(20, kIstio))), milliseconds(4));
  EXPECT_EQ(longest(read(kEnvoy, {.format = "envoy"})), milliseconds(226));
}

TEST(ReadEnvoyTest, TakesItsOwnFormat) {
  const std::string text = times(20, "GET 200 33ms\n");
  EXPECT_EQ(longest(read(text, {.format = "envoy:%REQ(:METHOD)% %RESPONSE_CODE% %DURATION%ms"})),
            milliseconds(33));
  EXPECT_THAT(error_of(read(text, {.format = "envoy", .column = "DURATION"})),
              HasSubstr("needs to know the log's format"));
}

// ---- HdrHistogram logs ------------------------------------------------------------------------

std::string hdr_log(std::string_view tag = "") {
  HdrWriter writer;
  writer.counts = {-1000, 90, -1023, 10};  // 90 of 1,000 and 10 of 2,024
  return fmt::format(
      "#[Histogram log format version 1.3]\n"
      "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
      "{}0.127,1.007,0.002,{}\n",
      tag, writer.base64());
}

TEST(ReadHdrTest, TakesValuesAsNanosecondsUnlessToldOtherwise) {
  const Result<Reading> reading = read(hdr_log());
  ASSERT_TRUE(reading) << error_of(reading);
  EXPECT_EQ(reading->latencies, 100u);
  EXPECT_EQ(reading->understood, "HdrHistogram log in ns");
  EXPECT_EQ(reading->samples.histogram.max(), Duration{2024});
  EXPECT_EQ(longest(read(hdr_log(), {.unit = Unit::kUs})), microseconds(2024));
}

TEST(ReadHdrTest, TakesOneTagWhenAskedTo) {
  const std::string text = hdr_log("Tag=a,") + hdr_log("Tag=b,");
  EXPECT_EQ(read(text)->latencies, 200u);
  EXPECT_EQ(read(text, {.column = "a"})->latencies, 100u);
  EXPECT_THAT(error_of(read(text, {.column = "c"})),
              HasSubstr("no line has the tag 'c' | the tags are 'a', 'b'"));
  EXPECT_THAT(error_of(read(hdr_log(), {.column = "c"})), HasSubstr("no line has the tag 'c'"));
}

TEST(ReadHdrTest, SkipsADamagedIntervalAndRefusesOldVersions) {
  const std::string text = times(20, hdr_log()) + "0.127,1.007,0.002,HISTFAAAAEV4";
  const Result<Reading> reading = read(text);
  ASSERT_TRUE(reading) << error_of(reading);
  EXPECT_EQ(reading->skipped.lines, 1u);
  EXPECT_EQ(reading->skipped.by_reason[static_cast<std::size_t>(Skip::kDamaged)], 1u);
  EXPECT_THAT(error_of(read("0.127,1.007,0.002,HISTFAAAAEV4\n")),
              HasSubstr("no latency in 1 line"));
  HdrWriter old;
  old.outer_cookie = 0x1c849302;
  EXPECT_THAT(error_of(read("0,1,2," + old.base64() + "\n", {.format = "hdr"})),
              HasSubstr("line 1: a histogram that is not of version 2"));
}

}  // namespace
}  // namespace tailward::plan
