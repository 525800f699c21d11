// Errors as values.
//
// A function that can fail for a reason its caller should handle returns Result<T>. The kind says
// what the caller may do next; the message says what happened, in one line; the hint says how to
// fix it. Bugs are assertions (base/check.h), never an Error.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace tailward {

enum class ErrorKind {
  kInvalid,       // the input is wrong: repeating the call will not help
  kOverloaded,    // a limit was hit: later may work
  kDisconnected,  // the peer or the network went away: another connection may work
  kTimedOut,      // the time allowed is over
  kCancelled,     // the caller gave up; nobody is at fault
  kUnsupported,   // this build or kernel cannot do it
  kDenied,        // a privilege is missing
  kInternal,      // ours: worth a bug report
};

std::string_view to_string(ErrorKind kind);

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
  std::string hint = {};  // empty where there is nothing useful to say

  // The same error with `where` and a colon before its message.
  [[nodiscard]] Error in(std::string_view where) const;
};

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(tl::expected<T, Error> from) : tl::expected<T, Error>(std::move(from)) {}
};

// A failed Result of any type: `return fail(ErrorKind::kInvalid, "…", "hint");`
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
inline tl::unexpected<Error> fail(ErrorKind kind, std::string message, std::string hint = {}) {
  return fail(Error{kind, std::move(message), std::move(hint)});
}

}  // namespace tailward
