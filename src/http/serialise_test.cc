#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "http/codec.h"
#include "http/testing.h"

namespace tailward::http {
namespace {

using namespace std::string_literals;
using testing::describe;
using testing::run_requests;
using testing::run_responses;

template <class Head>
std::string head_of(const Head& head) {
  std::string out;
  append_head(out, head);
  return out;
}

TEST(AppendHeadTest, WritesARequest) {
  Request request{.method = "GET", .target = "/x"};
  request.fields.add("Host", "a");
  EXPECT_EQ(head_of(request), "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
  request.body = BodyKind::kLength;
  request.content_length = 0;
  EXPECT_EQ(head_of(request), "GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
}

TEST(AppendHeadTest, LetsNoFieldContradictTheFraming) {
  Request request{.method = "POST", .target = "/"};
  request.fields.add("Content-Length", "7");
  request.fields.add("Host", "a");
  request.fields.add("transfer-encoding", "gzip");
  request.fields.add("connection", "keep-alive");
  request.body = BodyKind::kChunked;
  request.keep_alive = false;
  EXPECT_EQ(
      head_of(request),
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
}

TEST(AppendHeadTest, TellsAnHttp10PeerThatTheConnectionStays) {
  Response response{.reason = "OK", .minor_version = 0};
  EXPECT_EQ(head_of(response),
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n");
}

TEST(AppendHeadTest, FramesAResponseWithoutBodyByItsStatus) {
  for (const int status : {100, 103, 204, 304}) {
    const Response response{.status = status};
    EXPECT_EQ(head_of(response), "HTTP/1.1 " + std::to_string(status) + " \r\n\r\n");
  }
  EXPECT_EQ(head_of(Response{.status = 500}), "HTTP/1.1 500 \r\nContent-Length: 0\r\n\r\n");
}

TEST(AppendHeadTest, ShowsWhatAResponseToHeadAnnounces) {
  Response response{.reason = "OK", .content_length = 7};
  response.announced = BodyKind::kLength;
  EXPECT_EQ(head_of(response), "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n");
  response.announced = BodyKind::kChunked;
  EXPECT_EQ(head_of(response), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  response.announced = BodyKind::kUntilClose;
  EXPECT_EQ(head_of(response), "HTTP/1.1 200 OK\r\n\r\n");
}

TEST(AppendHeadTest, ClosesAfterABodyUntilClose) {
  const Response response{.reason = "OK", .body = BodyKind::kUntilClose};
  EXPECT_EQ(head_of(response), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
}

TEST(AppendHeadDeathTest, RefusesHeadsThatNoReaderCouldFrame) {
  std::string out;
  EXPECT_DEATH(
      append_head(out, Request{.method = "GET", .target = "/", .body = BodyKind::kUntilClose}),
      "kUntilClose");
  EXPECT_DEATH(append_head(out, Response{.minor_version = 0, .body = BodyKind::kChunked}),
               "kChunked");
  EXPECT_DEATH(append_chunk_head(out, 0), "piece_size");
}

TEST(AppendChunkTest, WritesSizesInHexadecimal) {
  std::string out;
  append_chunk_head(out, 1);
  append_chunk_head(out, 31);
  append_chunk_head(out, 0xdeadbeef);
  append_last_chunk(out);
  EXPECT_EQ(out, "1\r\n1f\r\ndeadbeef\r\n0\r\n\r\n");
}

constexpr std::uint64_t kSeed = 20'240'611;

std::string random_text(Rng& rng, std::string_view alphabet, std::size_t least, std::size_t most) {
  std::string text;
  const std::size_t size = least + rng.below(most - least + 1);
  while (text.size() < size) text += alphabet[rng.below(alphabet.size())];
  return text;
}

std::string random_value(Rng& rng) {
  while (true) {
    std::string text = random_text(rng, "abz,;=\" \t\\:\x80\xff(){}", 0, 30);
    if (is_field_value(text)) return text;
  }
}

void add_random_fields(Rng& rng, Fields& fields) {
  for (std::uint64_t i = rng.below(8); i > 0; --i) {
    fields.add("x" + random_text(rng, "abcXYZ019-_.!#$%&'*+^`|~", 0, 20), random_value(rng));
  }
}

std::string random_body(Rng& rng) { return random_text(rng, "\r\n0123456789abcdef:; \0"s, 0, 200); }

// The body as `kind` puts it on the wire, in random chunks.
std::string wire_body(Rng& rng, BodyKind kind, std::string_view body) {
  if (kind != BodyKind::kChunked) return std::string(body);
  std::string out;
  while (!body.empty()) {
    const std::size_t size = 1 + rng.below(body.size());
    append_chunk_head(out, size);
    out.append(body.substr(0, size)).append("\r\n");
    body.remove_prefix(size);
  }
  append_last_chunk(out);
  return out;
}

std::vector<std::size_t> random_cuts(Rng& rng, std::size_t size) {
  std::vector<std::size_t> cuts;
  for (std::size_t at = rng.below(40); at < size; at += 1 + rng.below(40)) cuts.push_back(at);
  return cuts;
}

// The head without what the writer puts in itself, for comparing what was written with what was
// read.
template <class Head>
std::string essence(Head head) {
  for (const char* name : {"Connection", "Content-Length", "Transfer-Encoding"}) {
    head.fields.remove(name);
  }
  return describe(head);
}

TEST(RoundTripTest, ReadsRandomRequestsAsTheyWereWritten) {
  Rng rng(kSeed);
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  for (int i = 0; i < 2000; ++i) {
    Request request;
    request.method = random_text(rng, "GETPOSx-!", 1, 8);
    request.target = "/" + random_text(rng, "ab/?&=%.~\"{|}", 0, 40);
    request.minor_version = rng.chance(0.8) ? 1 : 0;
    request.fields.add("Host", random_text(rng, "ab.:[]09", 0, 12));
    add_random_fields(rng, request.fields);
    request.keep_alive = rng.chance(0.5);
    std::string body = random_body(rng);
    const auto kinds = std::to_array({BodyKind::kNone, BodyKind::kLength, BodyKind::kChunked});
    request.body = kinds[rng.below(request.minor_version == 1 ? 3 : 2)];
    if (request.body == BodyKind::kNone) body.clear();
    if (request.body == BodyKind::kLength) request.content_length = body.size();
    std::string wire;
    append_head(wire, request);
    wire += wire_body(rng, request.body, body);
    const auto outcome = run_requests(wire, random_cuts(rng, wire.size()));
    ASSERT_EQ(outcome.end, "idle") << wire;
    ASSERT_EQ(outcome.heads.size(), 1u);
    ASSERT_EQ(essence(outcome.heads[0]), essence(request)) << wire;
    if (!body.empty()) {
      ASSERT_EQ(outcome.events[1], "body " + body);
    }
  }
}

TEST(RoundTripTest, ReadsRandomResponsesAsTheyWereWritten) {
  Rng rng(kSeed + 1);
  SCOPED_TRACE("seed " + std::to_string(kSeed + 1));
  for (int i = 0; i < 2000; ++i) {
    Response response;
    response.status = static_cast<int>(200 + rng.below(800));
    response.reason = random_value(rng);
    response.minor_version = rng.chance(0.8) ? 1 : 0;
    add_random_fields(rng, response.fields);
    response.keep_alive = rng.chance(0.5);
    const bool to_head = rng.chance(0.2);
    std::string body = random_body(rng);
    const auto kinds =
        std::to_array({BodyKind::kLength, BodyKind::kUntilClose, BodyKind::kChunked});
    const BodyKind kind = kinds[rng.below(response.minor_version == 1 ? 3 : 2)];
    if (kind == BodyKind::kLength) response.content_length = body.size();
    if (response.status == 204) {
      response.content_length = 0;
      body.clear();
    } else if (to_head || response.status == 304) {
      response.announced = kind;
      body.clear();
    } else {
      response.body = kind;
      if (kind == BodyKind::kUntilClose) response.keep_alive = false;
    }
    std::string wire;
    append_head(wire, response);
    wire += wire_body(rng, response.body, body);
    const std::vector<std::string_view> methods = {to_head ? "HEAD" : "GET"};
    const bool eof = response.body == BodyKind::kUntilClose;
    const auto outcome = run_responses(wire, random_cuts(rng, wire.size()), methods, eof);
    ASSERT_EQ(outcome.end, "idle") << wire;
    ASSERT_EQ(outcome.heads.size(), 1u);
    ASSERT_EQ(essence(outcome.heads[0]), essence(response)) << wire;
    if (!body.empty()) {
      ASSERT_EQ(outcome.events[1], "body " + body);
    }
  }
}

}  // namespace
}  // namespace tailward::http
