#include "http/message.h"

#include <gtest/gtest.h>

#include <string>

#include "http/codec.h"
#include "http/testing.h"

namespace tailward::http {
namespace {

using testing::describe;

Fields sample() {
  Fields fields;
  fields.add("Host", "a.example");
  fields.add("Accept", "text/html");
  fields.add("X-Empty", "");
  fields.add("accept", "text/plain");
  return fields;
}

TEST(FieldsTest, KeepsOrderAndDuplicates) {
  EXPECT_EQ(describe(sample()),
            " | Host: a.example | Accept: text/html | X-Empty:  | accept: text/plain");
}

TEST(FieldsTest, ComparesNamesWithoutCase) {
  const Fields fields = sample();
  EXPECT_EQ(fields.find("HOST"), "a.example");
  EXPECT_EQ(fields.find("aCCept"), "text/html");
  EXPECT_EQ(fields.find("x-empty"), "");
  EXPECT_EQ(fields.find("Hos"), std::nullopt);
  EXPECT_EQ(fields.count("ACCEPT"), 2u);
}

TEST(FieldsTest, RemovesEveryFieldOfAName) {
  Fields fields = sample();
  EXPECT_EQ(fields.remove("Accept"), 2u);
  EXPECT_EQ(fields.remove("Accept"), 0u);
  EXPECT_EQ(describe(fields), " | Host: a.example | X-Empty: ");
}

TEST(FieldsTest, SetReplacesEveryFieldOfAName) {
  Fields fields = sample();
  fields.set("ACCEPT", "*/*");
  fields.set("New", "1");
  EXPECT_EQ(describe(fields), " | Host: a.example | X-Empty:  | ACCEPT: */* | New: 1");
}

TEST(FieldsTest, DoesNotGrowWhenAFieldIsSetAgainAndAgain) {
  Fields fields = sample();
  fields.reserve(4096, 16);
  const char* memory = fields.at(0).name.data();
  for (int i = 0; i < 10'000; ++i) fields.set("X-Count", std::to_string(i));
  EXPECT_EQ(fields.find("X-Count"), "9999");
  EXPECT_EQ(fields.at(0).name.data(), memory);
}

TEST(FieldsTest, FindsTokensInEveryLineOfAListField) {
  Fields fields;
  fields.add("Connection", "foo ,\tClose");
  fields.add("connection", "bar");
  EXPECT_TRUE(fields.has_token("Connection", "close"));
  EXPECT_TRUE(fields.has_token("Connection", "BAR"));
  EXPECT_TRUE(fields.has_token("Connection", "foo"));
  EXPECT_FALSE(fields.has_token("Connection", "fo"));
  EXPECT_FALSE(fields.has_token("Connection", "foo , close"));
}

TEST(FieldsTest, IsEmptyAfterClear) {
  Fields fields = sample();
  fields.clear();
  EXPECT_TRUE(fields.empty());
  EXPECT_EQ(fields.find("Host"), std::nullopt);
}

TEST(HopByHopTest, RemovesTheKnownFieldsAndThoseThatConnectionNames) {
  Fields fields;
  fields.add("Host", "a");
  fields.add("Connection", "close, X-Mine");
  fields.add("Keep-Alive", "timeout=5");
  fields.add("X-Mine", "1");
  fields.add("connection", "x-other");
  fields.add("X-Other", "2");
  fields.add("TE", "trailers");
  fields.add("Upgrade", "h2c");
  fields.add("Proxy-Connection", "keep-alive");
  fields.add("Transfer-Encoding", "chunked");
  fields.add("X-Kept", "3");
  remove_hop_by_hop(fields);
  EXPECT_EQ(describe(fields), " | Host: a | X-Kept: 3");
}

TEST(HopByHopTest, KeepsHostAndContentLengthThoughConnectionNamesThem) {
  Fields fields;
  fields.add("Host", "a");
  fields.add("Content-Length", "5");
  fields.add("Connection", "host, content-length");
  remove_hop_by_hop(fields);
  EXPECT_EQ(describe(fields), " | Host: a | Content-Length: 5");
}

TEST(MessageTest, KnowsSafeAndIdempotentMethods) {
  for (const char* method : {"GET", "HEAD", "OPTIONS", "TRACE"}) EXPECT_TRUE(is_safe(method));
  for (const char* method : {"PUT", "DELETE", "POST", "PATCH", "get", ""})
    EXPECT_FALSE(is_safe(method));
  for (const char* method : {"GET", "PUT", "DELETE"}) EXPECT_TRUE(is_idempotent(method));
  for (const char* method : {"POST", "PATCH", "put"}) EXPECT_FALSE(is_idempotent(method));
}

TEST(MessageTest, KnowsTheReasonPhrasesInUse) {
  EXPECT_EQ(reason_phrase(100), "Continue");
  EXPECT_EQ(reason_phrase(200), "OK");
  EXPECT_EQ(reason_phrase(431), "Request Header Fields Too Large");
  EXPECT_EQ(reason_phrase(511), "Network Authentication Required");
  EXPECT_EQ(reason_phrase(299), "");
  EXPECT_EQ(reason_phrase(999), "");
}

TEST(MessageTest, TellsTokensAndFieldValues) {
  for (const char* token : {"GET", "x-y_z", "!#$%&'*+-.^_`|~09azAZ"}) EXPECT_TRUE(is_token(token));
  for (const char* other : {"", "a b", "a:b", "a\r", "\xc3\xa4", "(a)", "a@b", "\x7f"}) {
    EXPECT_FALSE(is_token(other)) << other;
  }
  for (const char* value : {"", "a", "a b\tc", "\xc3\xa4", "\"q\""}) {
    EXPECT_TRUE(is_field_value(value)) << value;
  }
  using namespace std::string_view_literals;
  for (const auto other : {" a"sv, "a\t"sv, "a\rb"sv, "a\nb"sv, "a\0b"sv, "\x7f"sv, " "sv}) {
    EXPECT_FALSE(is_field_value(other)) << other;
  }
}

}  // namespace
}  // namespace tailward::http
