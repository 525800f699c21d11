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

// Header fields in their order of arrival, duplicates kept. Names compare without case. All text lies in
// one buffer: a message's fields cost two allocations, not two each. Views are valid until the next change.
class Fields {
 public:
  struct Field {
    std::string_view name;
    std::string_view value;
  };

  // Appends a field. REQUIRES: name is a token and value holds no CR, LF or NUL (the codec checks what
  // arrives; is_token() and is_field_value() in http/codec.h check what a user gives).
  void add(std::string_view name, std::string_view value);
  // Replaces every field of that name by this one.
  void set(std::string_view name, std::string_view value);
  // Removes every field of that name; returns how many there were.
  std::size_t remove(std::string_view name);
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

 private:
  struct Span {
    std::uint32_t at;
    std::uint32_t name_size;
    std::uint32_t value_size;
  };
  std::string text_;
  std::vector<Span> spans_;
};

// How the end of a body is found.
enum class BodyKind { kNone, kLength, kChunked, kUntilClose };

struct Request {
  std::string method;
  std::string target;
  int minor_version = 1;
  Fields fields;
  BodyKind body = BodyKind::kNone;
  std::uint64_t content_length = 0;  // with kLength
  bool keep_alive = true;            // what the peer's version and Connection field say
};

struct Response {
  int status = 200;
  std::string reason;
  int minor_version = 1;
  Fields fields;
  BodyKind body = BodyKind::kNone;
  std::uint64_t content_length = 0;
  bool keep_alive = true;
};

// GET, HEAD, OPTIONS, PUT, DELETE, TRACE are idempotent by RFC 9110 §9.2.2; only the safe ones of them
// (GET, HEAD, OPTIONS, TRACE) are hedged without being told to.
[[nodiscard]] bool is_safe(std::string_view method);

// The usual reason phrase; "" for an unknown status.
[[nodiscard]] std::string_view reason_phrase(int status);

}  // namespace tailward::http
