// The head of an HTTP/1.1 request or response, as values. RFC 9110, RFC 9112.
//
// Thread safety: values; use one from one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tailward::http {

// Names of fields and of most things in their values compare like this: ASCII letters without case.
[[nodiscard]] bool equals_ignoring_case(std::string_view a, std::string_view b);

// Header fields in their order of arrival, duplicates kept. Names compare without case. All text
// lies in one buffer: a message's fields cost two allocations, not two each. Views are valid until
// the next change. clear() keeps the memory. REQUIRES: less than 4 GiB of text.
class Fields {
 public:
  struct Field {
    std::string_view name;
    std::string_view value;
  };

  // Appends a field. REQUIRES: name is a token and value holds no CR, LF or NUL (the codec checks
  // what arrives; is_token() and is_field_value() in http/codec.h check what a user gives).
  void add(std::string_view name, std::string_view value);
  // Replaces every field of that name by this one.
  void set(std::string_view name, std::string_view value);
  // Removes every field of that name; returns how many there were.
  std::size_t remove(std::string_view name);
  // Removes the fields for which `unwanted(Field)` is true, in one pass; returns how many there
  // were. The predicate must not look at other fields: they are on the move.
  template <class Unwanted>
  std::size_t remove_if(Unwanted unwanted);
  // The first value of that name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  // How many fields have that name.
  [[nodiscard]] std::size_t count(std::string_view name) const;
  // True when a comma-separated list field holds `token` (without case), in any of its lines.
  [[nodiscard]] bool has_token(std::string_view name, std::string_view token) const;

  [[nodiscard]] std::size_t size() const { return spans_.size(); }
  [[nodiscard]] bool empty() const { return spans_.empty(); }
  [[nodiscard]] Field at(std::size_t index) const;
  void clear();
  // Makes room for `fields` fields of `bytes` characters together.
  void reserve(std::size_t bytes, std::size_t fields);

 private:
  // The value follows its name, and the fields follow each other without gaps.
  struct Span {
    std::uint32_t at;
    std::uint32_t name_size;
    std::uint32_t value_size;
  };
  // Moves the text of `span` down to `at`.
  Span moved(Span span, std::size_t at);

  std::string text_;
  std::vector<Span> spans_;
};

template <class Unwanted>
std::size_t Fields::remove_if(Unwanted unwanted) {
  std::size_t kept = 0;
  std::size_t text_end = 0;
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    if (unwanted(at(i))) continue;
    const Span span = moved(spans_[i], text_end);
    text_end += span.name_size + span.value_size;
    spans_[kept++] = span;
  }
  const std::size_t removed = spans_.size() - kept;
  spans_.resize(kept);
  text_.resize(text_end);
  return removed;
}

// How the end of a body is found. A request never is kUntilClose.
enum class BodyKind { kNone, kLength, kChunked, kUntilClose };

struct Request {
  std::string method = {};
  std::string target = {};
  int minor_version = 1;
  Fields fields = {};
  BodyKind body = BodyKind::kNone;
  std::uint64_t content_length = 0;  // with kLength
  bool keep_alive = true;            // what the peer's version and Connection field say
};

struct Response {
  int status = 200;
  std::string reason = {};
  int minor_version = 1;
  Fields fields = {};
  BodyKind body = BodyKind::kNone;
  std::uint64_t content_length = 0;  // with kLength, and with `announced` kLength
  bool keep_alive = true;            // never with kUntilClose
  // A response to HEAD and a 304 have no body (kNone) but announce the framing of the body that a
  // GET would have got. Here is what they announce; kUntilClose: nothing. kNone for every other
  // response.
  BodyKind announced = BodyKind::kNone;
};

// GET, HEAD, OPTIONS, PUT, DELETE, TRACE are idempotent by RFC 9110 §9.2.2; only the safe ones of
// them (GET, HEAD, OPTIONS, TRACE) are hedged without being told to. Methods compare with case.
[[nodiscard]] bool is_safe(std::string_view method);
[[nodiscard]] bool is_idempotent(std::string_view method);

// The usual reason phrase; "" for an unknown status.
[[nodiscard]] std::string_view reason_phrase(int status);

}  // namespace tailward::http
