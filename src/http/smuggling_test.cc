// Messages that two readers could understand differently, and the limits: each is refused with the
// right status, whole and however it is cut. The classics are described in RFC 9112 §11.2 and in
// Kettle, "HTTP Desync Attacks" (2019).

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "http/codec.h"
#include "http/testing.h"

namespace tailward::http {
namespace {

using namespace std::string_literals;
using testing::every_byte;
using testing::run_requests;
using testing::run_responses;

struct BadRequest {
  const char* name;
  std::string bytes;
  int status;
};

// A POST whose framing fields are `fields`, with `body`, which holds a second request to smuggle.
std::string post(const std::string& fields,
                 const std::string& body = "0\r\n\r\nGET /admin HTTP/1.1\r\n") {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n\r\n" + body;
}

std::string get(const std::string& fields) { return "GET / HTTP/1.1\r\n" + fields + "\r\n"; }

std::string chunked(const std::string& body) { return post("Transfer-Encoding: chunked", body); }

std::vector<BadRequest> framing_cases() {
  return {
      {"CL.TE", post("Content-Length: 6\r\nTransfer-Encoding: chunked"), 400},
      {"TE.CL", post("Transfer-Encoding: chunked\r\nContent-Length: 3"), 400},
      {"TE.CL without case", post("transfer-encoding: CHUNKED\r\ncontent-length: 3"), 400},
      {"TE.TE xchunked", post("Transfer-Encoding: xchunked"), 501},
      {"TE.TE chunked, identity", post("Transfer-Encoding: chunked, identity"), 501},
      {"TE.TE identity, chunked", post("Transfer-Encoding: identity, chunked"), 501},
      {"TE.TE identity", post("Transfer-Encoding: identity"), 501},
      {"TE.TE gzip, chunked", post("Transfer-Encoding: gzip, chunked"), 501},
      {"TE.TE chunked, chunked", post("Transfer-Encoding: chunked, chunked"), 501},
      {"TE.TE trailing comma", post("Transfer-Encoding: chunked,"), 501},
      {"TE.TE parameter", post("Transfer-Encoding: chunked;a=b"), 501},
      {"TE.TE quoted", post("Transfer-Encoding: \"chunked\""), 501},
      {"TE.TE empty", post("Transfer-Encoding:"), 501},
      {"TE.TE chunk", post("Transfer-Encoding: chunk"), 501},
      {"TE.TE no-break space",
       post("Transfer-Encoding: \xa0"
            "chunked"),
       501},
      {"TE.TE space before the colon", post("Transfer-Encoding : chunked"), 400},
      {"TE.TE tab before the colon", post("Transfer-Encoding\t: chunked"), 400},
      {"TE.TE space before the name", post(" Transfer-Encoding: chunked"), 400},
      {"TE.TE tab before the name", post("X: y\r\n\tTransfer-Encoding: chunked"), 400},
      {"TE.TE vertical tab", post("Transfer-Encoding: \vchunked"), 400},
      {"TE.TE NUL", post("Transfer-Encoding: chunked\0"s), 400},
      {"TE.TE bare LF before", post("X: y\nTransfer-Encoding: chunked"), 400},
      {"TE.TE bare CR before", post("X: y\rTransfer-Encoding: chunked"), 400},
      {"TE.TE folded", post("Transfer-Encoding:\r\n chunked"), 400},
      {"TE.TE duplicate", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), 400},
      {"TE.TE duplicate, cow", post("Transfer-Encoding: chunked\r\nTransfer-encoding: cow"), 400},
      {"TE.TE duplicate, identity first",
       post("Transfer-Encoding: x\r\nTransfer-Encoding: chunked"), 501},
      {"TE look-alike", post("Transfer_Encoding: chunked"), 400},
      {"TE in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"CL duplicate, equal", post("Content-Length: 5\r\nContent-Length: 5", "hello"), 400},
      {"CL duplicate, differing", post("Content-Length: 5\r\nContent-Length: 0", "hello"), 400},
      {"CL list, equal", post("Content-Length: 5, 5", "hello"), 400},
      {"CL list, differing", post("Content-Length: 5, 0", "hello"), 400},
      {"CL trailing comma", post("Content-Length: 5,", "hello"), 400},
      {"CL plus sign", post("Content-Length: +5", "hello"), 400},
      {"CL minus sign", post("Content-Length: -5", "hello"), 400},
      {"CL hexadecimal", post("Content-Length: 0x5", "hello"), 400},
      {"CL fraction", post("Content-Length: 5.0", "hello"), 400},
      {"CL exponent", post("Content-Length: 5e0", "hello"), 400},
      {"CL inner space", post("Content-Length: 1 0", "hello"), 400},
      {"CL quoted", post("Content-Length: \"5\"", "hello"), 400},
      {"CL empty", post("Content-Length:", "hello"), 400},
      {"CL beyond 64 bits", post("Content-Length: 18446744073709551621", "hello"), 400},
      {"CL beyond 63 bits", post("Content-Length: 9223372036854775808", "hello"), 400},
      {"CL space before the colon", post("Content-Length : 5", "hello"), 400},
      {"CL look-alike", post("Content_Length: 5", "hello"), 400},
      {"CL folded", post("Content-Length:\r\n 5", "hello"), 400},
  };
}

std::vector<BadRequest> chunk_cases() {
  const std::string digits17 = "00000000000000005";
  return {
      {"chunk 0x", chunked("0x5\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk 0x0", chunked("0x0\r\n\r\n"), 400},
      {"chunk plus sign", chunked("+5\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk minus sign", chunked("-5\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk space before", chunked(" 5\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk space after", chunked("5 \r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk tab after", chunked("5\t\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk space before the extension", chunked("5 ;a\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk not a number", chunked("g\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk digits and junk", chunked("5z\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk without size", chunked("\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk only an extension", chunked(";a=b\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk of 17 digits", chunked(digits17 + "\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk beyond 64 bits", chunked("10000000000000005\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk beyond 63 bits", chunked("ffffffffffffffff\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk line bare LF", chunked("5\nhello\r\n0\r\n\r\n"), 400},
      {"chunk line bare CR", chunked("5\rX\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk line LF CR", chunked("5\n\rhello\r\n0\r\n\r\n"), 400},
      {"chunk extension with bare LF", chunked("5;a\nb\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk extension with bare CR", chunked("5;a=\"\rb\"\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk extension with NUL", chunked("5;a=\"\0\"\r\nhello\r\n0\r\n\r\n"s), 400},
      {"chunk extension without name", chunked("5;\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk extension not closed", chunked("5;a=\"b\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk extension too long", chunked("5;" + std::string(300, 'a') + "\r\nhello\r\n0\r\n\r\n"),
       400},
      {"chunk longer than its size", chunked("3\r\nhello\r\n0\r\n\r\n"), 400},
      {"chunk ends in LF", chunked("5\r\nhello\n0\r\n\r\n"), 400},
      {"chunk ends in CR CR", chunked("5\r\nhello\r\r0\r\n\r\n"), 400},
      {"chunk shorter than its size", chunked("7\r\nhello\r\n0\r\n\r\n"), 400},
      {"last chunk ends in LF", chunked("0\n\r\n"), 400},
      {"body ends in LF", chunked("0\r\n\n"), 400},
      {"trailer Content-Length", chunked("0\r\nContent-Length: 5\r\n\r\n"), 400},
      {"trailer Transfer-Encoding", chunked("0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
      {"trailer folded", chunked("0\r\nA: b\r\n c\r\n\r\n"), 400},
      {"trailer begins with space", chunked("0\r\n A: b\r\n\r\n"), 400},
      {"trailer without colon", chunked("0\r\nGET /admin HTTP/1.1\r\n\r\n"), 400},
      {"trailer bare LF", chunked("0\r\nA: b\nC: d\r\n\r\n"), 400},
      {"trailers too long", chunked("0\r\nA: " + std::string(9000, 'a') + "\r\n\r\n"), 431},
  };
}

std::vector<BadRequest> head_cases() {
  return {
      {"no Host", get("A: b\r\n"), 400},
      {"two Hosts", get("Host: a\r\nHost: b\r\n"), 400},
      {"two equal Hosts", get("Host: a\r\nhost: a\r\n"), 400},
      {"two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"Host with space", get("Host: a b\r\n"), 400},
      {"Host list", get("Host: a, b\r\n"), 400},
      {"Host with path", get("Host: a/b\r\n"), 400},
      {"Host with user", get("Host: a@b\r\n"), 400},
      {"space before the colon", get("Host: a\r\nX : y\r\n"), 400},
      {"space in a name", get("Host: a\r\nX y: z\r\n"), 400},
      {"empty name", get("Host: a\r\n: z\r\n"), 400},
      {"no colon", get("Host: a\r\nX\r\n"), 400},
      {"non-ASCII name", get("Host: a\r\nX\xc3\xa4: z\r\n"), 400},
      {"obs-fold", get("Host: a\r\nX: y\r\n z\r\n"), 400},
      {"obs-fold, blank line", get("Host: a\r\nX: y\r\n \r\n"), 400},
      {"white space after the request line", get(" Host: a\r\n"), 400},
      {"bare LF", get("Host: a\nX: y\r\n"), 400},
      {"bare LF everywhere", "GET / HTTP/1.1\nHost: a\n\n", 400},
      {"bare LF at the end", get("Host: a\r\n\n"), 400},
      {"bare CR", get("Host: a\rX: y\r\n"), 400},
      {"CR CR LF", get("Host: a\r\r\n"), 400},
      {"NUL in a value", get("Host: a\r\nX: \0\r\n"s), 400},
      {"NUL in a name", get("Host: a\r\nX\0: y\r\n"s), 400},
      {"control in a value", get("Host: a\r\nX: \x01\r\n"), 400},
      {"DEL in a value", get("Host: a\r\nX: \x7f\r\n"), 400},
      {"method with a bracket", "GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"method empty", " / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"method non-ASCII", "G\xc3\x8bT / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"TLS", "\x16\x03\x01\x02\x00\x01"s, 400},
      {"two empty lines before", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"LF before", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"target with tab", "GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"target with space", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"target after two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"version after two spaces", "GET /  HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"space after the version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
      {"target non-ASCII", "GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"target with NUL", "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"s, 400},
      {"target with DEL", "GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"target with fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"target without slash", "GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"target * of GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"target missing", "GET HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"CONNECT with a path", "CONNECT a/b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"HTTP/0.9", "GET /\r\n\r\n", 400},
      {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"HTTP/0.9 with version", "GET / HTTP/0.9\r\n\r\n", 505},
      {"http in lower case", "GET / http/1.1\r\nHost: a\r\n\r\n", 400},
      {"HTTP/01.1", "GET / HTTP/01.1\r\nHost: a\r\n\r\n", 400},
      {"target too long", "GET /" + std::string(17'000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
      {"target too long, no end", "GET /" + std::string(17'000, 'a'), 414},
      {"a field too long", get("Host: a\r\nX: " + std::string(66'000, 'a') + "\r\n"), 431},
      {"a field without end", "GET / HTTP/1.1\r\nX: " + std::string(66'000, 'a'), 431},
  };
}

void expect_refused(const BadRequest& bad) {
  SCOPED_TRACE(bad.name);
  const auto whole = run_requests(bad.bytes, {});
  EXPECT_EQ(whole.status, bad.status) << whole.end;
  EXPECT_TRUE(whole.end.starts_with("refused: ")) << whole.end;
  EXPECT_LE(whole.heads.size(), 1u);
  EXPECT_EQ(run_requests(bad.bytes, every_byte(bad.bytes)), whole);
  // Every cut of the long ones would take minutes and show nothing more.
  const std::size_t step = 1 + bad.bytes.size() / 500;
  for (std::size_t cut = 1; cut < bad.bytes.size(); cut += step) {
    ASSERT_EQ(run_requests(bad.bytes, {{cut}}), whole) << "cut at " << cut;
  }
}

TEST(SmugglingTest, RefusesEveryAmbiguousFraming) {
  for (const BadRequest& bad : framing_cases()) {
    expect_refused(bad);
    EXPECT_TRUE(run_requests(bad.bytes, {}).events.empty()) << bad.name;
  }
}

TEST(SmugglingTest, RefusesEveryMalformedChunk) {
  for (const BadRequest& bad : chunk_cases()) {
    expect_refused(bad);
    EXPECT_EQ(run_requests(bad.bytes, {}).heads.size(), 1u) << bad.name;
  }
}

TEST(SmugglingTest, RefusesEveryMalformedHead) {
  for (const BadRequest& bad : head_cases()) {
    expect_refused(bad);
    EXPECT_TRUE(run_requests(bad.bytes, {}).events.empty()) << bad.name;
  }
}

TEST(LimitsTest, RefusesTheFieldAfterTheLastThatIsAllowed) {
  Limits limits;
  limits.fields = 3;
  EXPECT_EQ(run_requests(get("Host: a\r\nA:\r\nB:\r\n"), {}, limits).end, "idle");
  EXPECT_EQ(run_requests(get("Host: a\r\nA:\r\nB:\r\nC:\r\n"), {}, limits).status, 431);
}

TEST(LimitsTest, TakesAHeadOfExactlyTheLimitAndNoByteMore) {
  const std::string head = get("Host: a\r\nX: yyy\r\n");
  Limits limits;
  limits.head_bytes = head.size();
  EXPECT_EQ(run_requests(head, {}, limits).end, "idle");
  EXPECT_EQ(run_requests(head, every_byte(head), limits).end, "idle");
  limits.head_bytes = head.size() - 1;
  EXPECT_EQ(run_requests(head, {}, limits).status, 431);
  EXPECT_EQ(run_requests(head, every_byte(head), limits).status, 431);
}

TEST(LimitsTest, TakesABodyOfExactlyTheLimitAndNoByteMore) {
  Limits limits;
  limits.body_bytes = 5;
  EXPECT_EQ(run_requests(post("Content-Length: 5", "hello"), {}, limits).end, "idle");
  EXPECT_EQ(run_requests(post("Content-Length: 6", ""), {}, limits).status, 413);
  EXPECT_EQ(run_requests(chunked("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"), {}, limits).end, "idle");
  EXPECT_EQ(run_requests(chunked("2\r\nhe\r\n4\r\n"), {}, limits).status, 413);
  const std::string until_close = "HTTP/1.1 200 OK\r\n\r\n";
  EXPECT_EQ(run_responses(until_close + "hello", {}, {}, true, limits).end, "idle");
  EXPECT_EQ(run_responses(until_close + "hello!", {}, {}, true, limits).end,
            "refused: invalid: the body is too large");
}

TEST(LimitsTest, BoundsTheChunkExtensionsOfAMessageTogether) {
  const std::string line = "1;" + std::string(199, 'a') + "\r\nx\r\n";
  std::string body;
  for (int i = 0; i < 20; ++i) body += line;
  EXPECT_EQ(run_requests(chunked(body + "0\r\n\r\n"), {}).end, "idle");
  EXPECT_EQ(run_requests(chunked(body + line), {}).status, 400);
}

struct BadResponse {
  const char* name;
  std::string bytes;
  const char* kind = "invalid";
};

std::vector<BadResponse> response_cases() {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  std::string interim;
  for (int i = 0; i < 17; ++i) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  return {
      {"CL.TE", ok + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"TE.CL", ok + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"},
      {"TE gzip", ok + "Transfer-Encoding: gzip\r\n\r\n", "unsupported"},
      {"TE in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"CL duplicate", ok + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"},
      {"CL list", ok + "Content-Length: 5, 5\r\n\r\nhello"},
      {"CL.TE of a 204",
       "HTTP/1.1 204 x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"chunk size", ok + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n"},
      {"switch", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", "unsupported"},
      {"status 099", "HTTP/1.1 099 x\r\n\r\n"},
      {"status 000", "HTTP/1.1 000 x\r\n\r\n"},
      {"status of two digits", "HTTP/1.1 20 x\r\n\r\n"},
      {"status of four digits", "HTTP/1.1 2000 x\r\n\r\n"},
      {"status with sign", "HTTP/1.1 -20 x\r\n\r\n"},
      {"status missing", "HTTP/1.1 \r\n\r\n"},
      {"version 2.0", "HTTP/2.0 200 OK\r\n\r\n"},
      {"version 1.2", "HTTP/1.2 200 OK\r\n\r\n"},
      {"not HTTP", "220 mail.example ESMTP\r\n"},
      {"ICY", "ICY 200 OK\r\n\r\n"},
      {"an empty line before", "\r\nHTTP/1.1 200 OK\r\n\r\n"},
      {"control in the reason", "HTTP/1.1 200 O\x01K\r\n\r\n"},
      {"bare LF", "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n"},
      {"bare CR", ok + "A: b\rContent-Length: 0\r\n\r\n"},
      {"obs-fold", ok + "A: b\r\n c\r\n\r\n"},
      {"endless interim responses", interim},
      {"status line too long", "HTTP/1.1 200 " + std::string(17'000, 'x')},
  };
}

TEST(SmugglingTest, RefusesEveryAmbiguousResponse) {
  for (const BadResponse& bad : response_cases()) {
    SCOPED_TRACE(bad.name);
    const auto whole = run_responses(bad.bytes, {});
    EXPECT_TRUE(whole.end.starts_with("refused: "s + bad.kind + ": ")) << whole.end;
    EXPECT_EQ(run_responses(bad.bytes, every_byte(bad.bytes)), whole);
    const std::size_t step = 1 + bad.bytes.size() / 500;
    for (std::size_t cut = 1; cut < bad.bytes.size(); cut += step) {
      ASSERT_EQ(run_responses(bad.bytes, {{cut}}), whole) << "cut at " << cut;
    }
  }
}

TEST(SmugglingTest, RefusesATunnel) {
  const std::vector<std::string_view> methods = {"CONNECT"};
  EXPECT_EQ(run_responses("HTTP/1.1 200 OK\r\n\r\n", {}, methods).end,
            "refused: unsupported: a tunnel (CONNECT)");
  EXPECT_EQ(run_responses("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", {}, methods).end, "idle");
}

}  // namespace
}  // namespace tailward::http
