// Runs a parser over bytes cut into pieces and writes down what it told, as text: for tests and
// fuzz targets. Two runs over the same bytes must give equal outcomes, however they were cut.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "http/codec.h"
#include "http/message.h"

namespace tailward::http::testing {

inline std::string describe(const Fields& fields) {
  std::string text;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    text.append(" | ").append(fields.at(i).name).append(": ").append(fields.at(i).value);
  }
  return text;
}

inline std::string describe(BodyKind kind, std::uint64_t length) {
  switch (kind) {
    case BodyKind::kNone:
      return "none";
    case BodyKind::kLength:
      return "length " + std::to_string(length);
    case BodyKind::kChunked:
      return "chunked";
    case BodyKind::kUntilClose:
      return "until close";
  }
  return "?";
}

inline std::string describe(const Request& head) {
  return head.method + " " + head.target + " 1." + std::to_string(head.minor_version) + " [" +
         describe(head.body, head.content_length) + (head.keep_alive ? ", keep" : ", close") + "]" +
         describe(head.fields);
}

inline std::string describe(const Response& head) {
  std::string announced;
  if (head.announced != BodyKind::kNone) {
    announced = ", announced " + describe(head.announced, head.content_length);
  }
  return std::to_string(head.status) + " '" + head.reason + "' 1." +
         std::to_string(head.minor_version) + " [" + describe(head.body, head.content_length) +
         announced + (head.keep_alive ? ", keep" : ", close") + "]" + describe(head.fields);
}

// Checks the order of calls and joins the pieces of a body.
template <class Head>
class EventLog final : public Sink<Head> {
 public:
  void on_head(Head&& head) override {
    TAILWARD_CHECK(!open_);
    open_ = true;
    heads.push_back(std::move(head));
    events.push_back("head " + describe(heads.back()));
  }
  void on_body(std::span<const char> piece) override {
    TAILWARD_CHECK(open_ && !piece.empty());
    body_.append(piece.data(), piece.size());
  }
  void on_end() override {
    TAILWARD_CHECK(open_);
    flush();
    events.push_back("end");
    open_ = false;
  }
  void flush() {
    if (!body_.empty()) events.push_back("body " + body_);
    body_.clear();
  }

  std::vector<std::string> events;
  std::vector<Head> heads;

 private:
  bool open_ = false;
  std::string body_;
};

template <class Head>
struct Outcome {
  std::vector<std::string> events;
  std::vector<Head> heads;
  std::string end;  // "idle", "in a head", "in a body" or why it was refused
  int status = 0;   // of a refused request
  friend bool operator==(const Outcome& a, const Outcome& b) {
    return a.events == b.events && a.end == b.end && a.status == b.status;
  }
};

// Calls take(piece) for the pieces between the cuts, each at the end of a block of its own, where a
// sanitizer sees every byte read beyond. Stops when take() returns false.
template <class Take>
void feed_pieces(std::string_view bytes, std::span<const std::size_t> cuts, Take take) {
  std::size_t from = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t to = i < cuts.size() ? std::min(cuts[i], bytes.size()) : bytes.size();
    if (to <= from) continue;
    const auto piece = std::make_unique<char[]>(to - from);
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(from),
              bytes.begin() + static_cast<std::ptrdiff_t>(to), piece.get());
    if (!take(std::span<const char>(piece.get(), to - from))) return;
    from = to;
  }
}

// Feeds one piece to the parser, resetting it after every message. Returns the error, if any.
template <class Parser, class BetweenMessages>
Result<void> feed_all(Parser& parser, std::span<const char> piece, BetweenMessages between) {
  while (!piece.empty()) {
    auto taken = parser.feed(piece);
    if (!taken) return fail(taken.error());
    TAILWARD_CHECK(*taken > 0 && *taken <= piece.size());
    piece = piece.subspan(*taken);
    if (parser.done()) {
      parser.reset();
      between();
    } else {
      TAILWARD_CHECK(piece.empty());
    }
  }
  return {};
}

template <class Parser>
std::string place(const Parser& parser) {
  if (parser.idle()) return "idle";
  return parser.head_done() ? "in a body" : "in a head";
}

// With what the log holds, and with where the parser stands if it refused nothing.
template <class Message, class Parser>
Outcome<Message> finished(Outcome<Message> outcome, const Parser& parser, EventLog<Message>& log) {
  if (outcome.end.empty()) {
    outcome.end = place(parser);
    log.flush();
  }
  outcome.events = std::move(log.events);
  outcome.heads = std::move(log.heads);
  return outcome;
}

inline Outcome<Request> run_requests(std::string_view bytes, std::span<const std::size_t> cuts,
                                     Limits limits = {}) {
  EventLog<Request> log;
  RequestParser parser(log, limits);
  Outcome<Request> outcome;
  feed_pieces(bytes, cuts, [&](std::span<const char> piece) {
    auto fed = feed_all(parser, piece, [] {});
    if (fed) return true;
    outcome.end = "refused: " + fed.error().message;
    outcome.status = parser.error_status();
    return false;
  });
  return finished(std::move(outcome), parser, log);
}

// `methods`: what each response answers; GET once they are used up. `eof`: the peer closes at the
// end.
inline Outcome<Response> run_responses(std::string_view bytes, std::span<const std::size_t> cuts,
                                       std::span<const std::string_view> methods = {},
                                       bool eof = false, Limits limits = {}) {
  EventLog<Response> log;
  ResponseParser parser(log, limits);
  Outcome<Response> outcome;
  std::size_t answered = 0;
  const auto expect = [&] {
    if (answered < methods.size()) parser.expect_response_to(methods[answered]);
    ++answered;
  };
  const auto refused = [&outcome](const Error& error) {
    outcome.end = std::string("refused: ").append(to_string(error.kind)) + ": " + error.message;
  };
  expect();
  feed_pieces(bytes, cuts, [&](std::span<const char> piece) {
    auto fed = feed_all(parser, piece, expect);
    if (!fed) refused(fed.error());
    return fed.has_value();
  });
  if (outcome.end.empty() && eof) {
    if (auto fed = parser.feed_eof(); !fed) refused(fed.error());
    if (parser.done()) parser.reset();
  }
  return finished(std::move(outcome), parser, log);
}

// Cuts after every byte.
inline std::vector<std::size_t> every_byte(std::string_view bytes) {
  std::vector<std::size_t> cuts;
  for (std::size_t i = 1; i < bytes.size(); ++i) cuts.push_back(i);
  return cuts;
}

}  // namespace tailward::http::testing
