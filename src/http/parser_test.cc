// What the parsers tell about valid messages, however these are cut.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "http/codec.h"
#include "http/testing.h"

namespace tailward::http {
namespace {

using testing::EventLog;
using testing::every_byte;
using testing::run_requests;
using testing::run_responses;
using Events = std::vector<std::string>;

struct Sample {
  std::string bytes;
  Events events;
  std::string end = "idle";
};

const std::vector<Sample>& request_samples() {
  static const std::vector<Sample> samples = {
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", {"head GET / 1.1 [none, keep] | Host: a", "end"}},
      {"GET /x?y=1%20&z=\"{|}\" HTTP/1.1\r\nHost:a:80\r\nEmpty:\r\nTabs:\t x \t y\t\r\n\r\n",
       {"head GET /x?y=1%20&z=\"{|}\" 1.1 [none, keep] | Host: a:80 | Empty:  | Tabs: x \t y",
        "end"}},
      {"OPTIONS * HTTP/1.1\r\nHost: \r\nConnection: Close\r\n\r\n",
       {"head OPTIONS * 1.1 [none, close] | Host:  | Connection: Close", "end"}},
      {"GET http://[::1]:8080/p HTTP/1.1\r\nhOST: [::1]:8080\r\n\r\n",
       {"head GET http://[::1]:8080/p 1.1 [none, keep] | hOST: [::1]:8080", "end"}},
      {"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
       {"head CONNECT a.example:443 1.1 [none, keep] | Host: a.example:443", "end"}},
      {"GET / HTTP/1.0\r\n\r\n", {"head GET / 1.0 [none, close]", "end"}},
      {"GET / HTTP/1.0\r\nConnection: x, Keep-Alive\r\n\r\n",
       {"head GET / 1.0 [none, keep] | Connection: x, Keep-Alive", "end"}},
      {"\r\nM-SEARCH / HTTP/1.1\r\nHost: a\r\nX: \xc3\xa4\r\n\r\n",
       {"head M-SEARCH / 1.1 [none, keep] | Host: a | X: \xc3\xa4", "end"}},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
       {"head POST / 1.1 [length 5, keep] | Host: a | Content-Length: 5", "body hello", "end"}},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
       {"head POST / 1.1 [length 0, keep] | Host: a | Content-Length: 0", "end"}},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
       {"head POST / 1.1 [chunked, keep] | Host: a | Transfer-Encoding: Chunked", "end"}},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
       "3\r\na\r\n\r\n00C;x;y=z;q=\"a\\\"b\"\r\n0\r\n\r\nGET / H\r\n000\r\nIgnored: x\r\nSum: "
       "1\r\n\r\n",
       {"head POST / 1.1 [chunked, keep] | Host: a | Transfer-Encoding: chunked",
        "body a\r\n0\r\n\r\nGET / H", "end"}},
      {"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: "
       "2\r\n\r\nhi"
       "\r\nPOST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
       "GET /4 HTTP/1.1\r\nHost: a\r\n\r\nGET /5",
       {"head GET /1 1.1 [none, keep] | Host: a", "end",
        "head POST /2 1.1 [length 2, keep] | Host: a | Content-Length: 2", "body hi", "end",
        "head POST /3 1.1 [chunked, keep] | Host: a | Transfer-Encoding: chunked", "body x", "end",
        "head GET /4 1.1 [none, keep] | Host: a", "end"},
       "in a head"},
  };
  return samples;
}

const std::vector<Sample>& response_samples() {
  static const std::vector<Sample> samples = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
       {"head 200 'OK' 1.1 [length 2, keep] | Content-Length: 2", "body hi", "end"}},
      {"HTTP/1.1 200 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
       {"head 200 '' 1.1 [length 0, close] | Content-Length: 0 | Connection: close", "end"}},
      {"HTTP/1.0 999 Very odd\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\nx",
       {"head 999 'Very odd' 1.0 [length 1, keep] | Content-Length: 1 | Connection: keep-alive",
        "body x", "end"}},
      {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nHTTP/1.1 304 Not Modified\r\n"
       "Content-Length: 7\r\n\r\nHTTP/1.1 304 Not Modified\r\n\r\n",
       {"head 204 'No Content' 1.1 [none, keep] | Content-Length: 5", "end",
        "head 304 'Not Modified' 1.1 [none, announced length 7, keep] | Content-Length: 7", "end",
        "head 304 'Not Modified' 1.1 [none, announced until close, keep]", "end"}},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
       {"head 200 'OK' 1.1 [chunked, keep] | Transfer-Encoding: chunked", "body hello", "end"}},
      {"HTTP/1.1 100 Continue\r\n\r\n", {}, "in a head"},
      {"HTTP/1.1 200 OK\r\n\r\nall that follows\r\n\r\nHTTP/1.1 200 OK",
       {"head 200 'OK' 1.1 [until close, close]", "body all that follows\r\n\r\nHTTP/1.1 200 OK"},
       "in a body"},
  };
  return samples;
}

TEST(RequestParserTest, TellsTheSameAtEverySplitPoint) {
  for (const Sample& sample : request_samples()) {
    SCOPED_TRACE(sample.bytes);
    const auto whole = run_requests(sample.bytes, {});
    EXPECT_EQ(whole.events, sample.events);
    EXPECT_EQ(whole.end, sample.end);
    for (const std::size_t cut : every_byte(sample.bytes)) {
      EXPECT_EQ(run_requests(sample.bytes, {{cut}}), whole) << "cut at " << cut;
    }
    EXPECT_EQ(run_requests(sample.bytes, every_byte(sample.bytes)), whole);
  }
}

TEST(RequestParserTest, TellsTheSameAtEveryPairOfSplitPoints) {
  const std::string& bytes = request_samples()[11].bytes;
  const auto whole = run_requests(bytes, {});
  for (std::size_t first = 1; first < bytes.size(); ++first) {
    for (std::size_t second = first + 1; second < bytes.size(); ++second) {
      ASSERT_EQ(run_requests(bytes, {{first, second}}), whole) << first << " " << second;
    }
  }
}

TEST(ResponseParserTest, TellsTheSameAtEverySplitPoint) {
  for (const Sample& sample : response_samples()) {
    SCOPED_TRACE(sample.bytes);
    const auto whole = run_responses(sample.bytes, {});
    EXPECT_EQ(whole.events, sample.events);
    EXPECT_EQ(whole.end, sample.end);
    for (const std::size_t cut : every_byte(sample.bytes)) {
      EXPECT_EQ(run_responses(sample.bytes, {{cut}}), whole) << "cut at " << cut;
    }
    EXPECT_EQ(run_responses(sample.bytes, every_byte(sample.bytes)), whole);
  }
}

TEST(ResponseParserTest, KnowsThatAResponseToHeadHasNoBody) {
  const std::string bytes =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
  const std::vector<std::string_view> methods = {"HEAD", "HEAD", "HEAD", "GET"};
  const Events expected = {
      "head 200 'OK' 1.1 [none, announced length 5, keep] | Content-Length: 5",
      "end",
      "head 200 'OK' 1.1 [none, announced chunked, keep] | Transfer-Encoding: chunked",
      "end",
      "head 200 'OK' 1.1 [none, announced until close, keep]",
      "end",
      "head 200 'OK' 1.1 [length 2, keep] | Content-Length: 2",
      "body hi",
      "end"};
  EXPECT_EQ(run_responses(bytes, {}, methods).events, expected);
  EXPECT_EQ(run_responses(bytes, every_byte(bytes), methods).events, expected);
}

TEST(ResponseParserTest, ForgetsHeadWhenItsResponseEndsOrIsGivenUp) {
  EventLog<Response> log;
  ResponseParser parser(log);
  const std::string_view bytes = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
  parser.expect_response_to("HEAD");
  parser.reset();  // nothing was under way: the expectation stays
  ASSERT_TRUE(parser.feed(bytes));
  EXPECT_TRUE(parser.done());
  parser.expect_response_to("HEAD");  // before the reset() is as good as after it
  parser.reset();
  ASSERT_TRUE(parser.feed(bytes.substr(0, 9)));
  parser.reset();
  ASSERT_TRUE(parser.feed(bytes));
  EXPECT_FALSE(parser.done());
}

TEST(ResponseParserTest, IsDisconnectedByAnEndOfFileAnywhereButInABodyUntilClose) {
  for (const Sample& sample : response_samples()) {
    const bool until_close = sample.end == "in a body";
    const std::size_t head_end = sample.bytes.find("\r\n\r\n") + 4;
    for (std::size_t size = 0; size <= sample.bytes.size(); ++size) {
      const std::string_view bytes = std::string_view(sample.bytes).substr(0, size);
      const auto before = run_responses(bytes, {});
      const auto after = run_responses(bytes, {}, {}, true);
      SCOPED_TRACE(bytes);
      if (until_close && size >= head_end) {
        EXPECT_EQ(after.events.back(), "end");
        EXPECT_EQ(after.end, "idle");
      } else if (before.end == "idle") {
        EXPECT_EQ(after.end, "refused: disconnected: the peer closed without an answer");
      } else {
        EXPECT_EQ(after.end, "refused: disconnected: the peer closed within a message");
      }
    }
  }
}

TEST(ResponseParserTest, TakesAnEndOfFileAfterItsEndAsNothing) {
  EventLog<Response> log;
  ResponseParser parser(log);
  ASSERT_TRUE(parser.feed(std::string_view("HTTP/1.1 204 x\r\n\r\n")));
  EXPECT_TRUE(parser.feed_eof());
  EXPECT_EQ(log.events.size(), 2u);
}

TEST(RequestParserTest, TakesOneMessageAndNoByteMore) {
  EventLog<Request> log;
  RequestParser parser(log);
  const std::string_view first = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
  const std::string two = std::string(first) + "GET / HTTP/1.1\r\n";
  EXPECT_TRUE(parser.idle());
  EXPECT_EQ(parser.feed(two).value(), first.size());
  EXPECT_TRUE(parser.done());
  EXPECT_TRUE(parser.head_done());
  EXPECT_FALSE(parser.idle());
  EXPECT_EQ(parser.feed(two).value(), 0u);
  parser.reset();
  EXPECT_TRUE(parser.idle());
  EXPECT_FALSE(parser.head_done());
  EXPECT_EQ(parser.feed(std::string_view("G")).value(), 1u);
  EXPECT_FALSE(parser.idle());
}

TEST(RequestParserTest, StaysDeadAfterAnErrorUntilReset) {
  EventLog<Request> log;
  RequestParser parser(log);
  EXPECT_FALSE(parser.feed(std::string_view("\x16\x03\x01")));
  EXPECT_FALSE(parser.feed(std::string_view("GET / HTTP/1.1\r\nHost: a\r\n\r\n")));
  EXPECT_TRUE(log.events.empty());
  parser.reset();
  EXPECT_TRUE(parser.feed(std::string_view("GET / HTTP/1.1\r\nHost: a\r\n\r\n")));
  EXPECT_TRUE(parser.done());
}

TEST(RequestParserTest, GivesBodiesAsViewsOfWhatItWasFed) {
  struct Views : Sink<Request> {
    void on_head(Request&&) override {}
    void on_body(std::span<const char> piece) override { pieces.push_back(piece); }
    void on_end() override {}
    std::vector<std::span<const char>> pieces;
  } views;
  RequestParser parser(views);
  const std::string bytes =
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  ASSERT_TRUE(parser.feed(bytes));
  ASSERT_EQ(views.pieces.size(), 2u);
  EXPECT_EQ(views.pieces[0].data(), bytes.data() + bytes.find("abc"));
  EXPECT_EQ(views.pieces[1].data(), bytes.data() + bytes.find("de\r"));
}

TEST(RequestParserTest, UsesTheMemoryAgainThatASinkLeaves) {
  struct Reader : Sink<Request> {
    void on_head(Request&& head) override { memory.push_back(head.fields.at(0).name.data()); }
    void on_body(std::span<const char>) override {}
    void on_end() override {}
    std::vector<const char*> memory;
  } reader;
  RequestParser parser(reader);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        parser.feed(std::string_view("GET / HTTP/1.1\r\nHost: a.long.name.example\r\n\r\n")));
    parser.reset();
  }
  EXPECT_EQ(reader.memory[1], reader.memory[0]);
  EXPECT_EQ(reader.memory[2], reader.memory[0]);
}

// Two pages, the second of which may not be touched.
class GuardedPage {
 public:
  GuardedPage() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* at = mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TAILWARD_CHECK(at != MAP_FAILED);
    at_ = static_cast<char*>(at);
    TAILWARD_CHECK(mprotect(at_ + page_, page_, PROT_NONE) == 0);
  }
  ~GuardedPage() { munmap(at_, 2 * page_); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;

  // The bytes, flush against the page that may not be touched.
  std::span<const char> place(std::string_view bytes) {
    TAILWARD_CHECK(bytes.size() <= page_);
    char* to = at_ + page_ - bytes.size();
    std::memcpy(to, bytes.data(), bytes.size());
    return {to, bytes.size()};
  }

 private:
  std::size_t page_;
  char* at_;
};

// Every prefix whole, then the rest as a second piece.
template <class Parser, class Head>
void read_guarded(const std::string& bytes) {
  GuardedPage page;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    EventLog<Head> log;
    Parser parser(log);
    const auto nothing = [] {};
    EXPECT_TRUE(testing::feed_all(parser, page.place(bytes.substr(0, size)), nothing));
    EXPECT_TRUE(testing::feed_all(parser, page.place(bytes.substr(size)), nothing));
  }
}

TEST(RequestParserTest, ReadsNoByteBeyondItsInput) {
  for (const Sample& sample : request_samples()) read_guarded<RequestParser, Request>(sample.bytes);
}

TEST(ResponseParserTest, ReadsNoByteBeyondItsInput) {
  for (const Sample& sample : response_samples()) {
    read_guarded<ResponseParser, Response>(sample.bytes);
  }
}

}  // namespace
}  // namespace tailward::http
