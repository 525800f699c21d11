#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "base/check.h"
#include "http/codec.h"
#include "http/text.h"

namespace tailward::http {

namespace {

void append_number(std::string& out, std::uint64_t number, int base = 10) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base);
  out.append(digits.data(), end.ptr);
}

// Written from the message's own members, never from its fields.
bool is_framing(std::string_view name) {
  switch (name.size()) {
    case 10:
      return equals_ignoring_case(name, "Connection");
    case 14:
      return equals_ignoring_case(name, "Content-Length");
    case 17:
      return equals_ignoring_case(name, "Transfer-Encoding");
    default:
      return false;
  }
}

void append_fields(std::string& out, const Fields& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Fields::Field field = fields.at(i);
    if (is_framing(field.name)) continue;
    out.append(field.name).append(": ").append(field.value).append("\r\n");
  }
}

void append_framing(std::string& out, BodyKind body, std::uint64_t length) {
  if (body == BodyKind::kLength) {
    out.append("Content-Length: ");
    append_number(out, length);
    out.append("\r\n");
  } else if (body == BodyKind::kChunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  }
}

void append_connection(std::string& out, int minor_version, bool keep_alive) {
  if (!keep_alive) {
    out.append("Connection: close\r\n");
  } else if (minor_version == 0) {
    out.append("Connection: keep-alive\r\n");
  }
}

void append_version(std::string& out, int minor_version) {
  TAILWARD_CHECK(minor_version == 0 || minor_version == 1);
  out.append(minor_version == 1 ? "HTTP/1.1" : "HTTP/1.0");
}

// The framing that a response's head shows, which is not always the one of the body that follows.
BodyKind shown_framing(const Response& response) {
  if (response.body != BodyKind::kNone) return response.body;
  if (response.status / 100 == 1 || response.status == 204) return BodyKind::kNone;
  if (response.announced == BodyKind::kChunked && response.minor_version == 0) {
    return BodyKind::kNone;  // a 1.0 reader may not be shown the coding, and no body hangs on it
  }
  if (response.announced != BodyKind::kNone) return response.announced;
  return response.status == 304 ? BodyKind::kNone : BodyKind::kLength;
}

bool is_hop_by_hop(std::string_view name) {
  // Trailer, since the codec drops trailers; Proxy-Auth*, since they are for this hop's proxy.
  static constexpr auto kNames = std::to_array<std::string_view>(
      {"Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding",
       "Upgrade", "Proxy-Authenticate", "Proxy-Authorization"});
  return std::any_of(kNames.begin(), kNames.end(),
                     [name](std::string_view hop) { return equals_ignoring_case(name, hop); });
}

bool may_be_named(std::string_view name) {
  return !equals_ignoring_case(name, "Host") && !equals_ignoring_case(name, "Content-Length");
}

}  // namespace

void append_head(std::string& out, const Request& request) {
  TAILWARD_CHECK(request.body != BodyKind::kUntilClose);
  TAILWARD_CHECK(request.body != BodyKind::kChunked || request.minor_version == 1);
  out.append(request.method).append(" ").append(request.target).append(" ");
  append_version(out, request.minor_version);
  out.append("\r\n");
  append_fields(out, request.fields);
  append_framing(out, request.body, request.content_length);
  append_connection(out, request.minor_version, request.keep_alive);
  out.append("\r\n");
}

void append_head(std::string& out, const Response& response) {
  TAILWARD_CHECK(response.status >= 100 && response.status <= 999);
  TAILWARD_CHECK(response.body != BodyKind::kChunked || response.minor_version == 1);
  append_version(out, response.minor_version);
  out.append(" ");
  append_number(out, static_cast<std::uint64_t>(response.status));
  out.append(" ").append(response.reason).append("\r\n");
  append_fields(out, response.fields);
  const bool nothing = response.body == BodyKind::kNone && response.announced == BodyKind::kNone;
  append_framing(out, shown_framing(response), nothing ? 0 : response.content_length);
  const bool until_close = response.body == BodyKind::kUntilClose;
  append_connection(out, response.minor_version, response.keep_alive && !until_close);
  out.append("\r\n");
}

void append_chunk_head(std::string& out, std::size_t piece_size) {
  TAILWARD_CHECK(piece_size > 0);
  append_number(out, piece_size, 16);
  out.append("\r\n");
}

void append_last_chunk(std::string& out) { out.append("0\r\n\r\n"); }

void remove_hop_by_hop(Fields& fields) {
  // A copy, since the predicate must not look at other fields; short enough to need no allocation.
  std::string named;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Fields::Field field = fields.at(i);
    if (!equals_ignoring_case(field.name, "Connection")) continue;
    if (!named.empty()) named += ',';
    named += field.value;
  }
  fields.remove_if([&named](const Fields::Field& field) {
    return is_hop_by_hop(field.name) ||
           (!named.empty() && may_be_named(field.name) && list_has_token(named, field.name));
  });
}

}  // namespace tailward::http
