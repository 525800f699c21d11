#include "base/result.h"

namespace tailward {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid:
      return "invalid";
    case ErrorKind::kOverloaded:
      return "overloaded";
    case ErrorKind::kDisconnected:
      return "disconnected";
    case ErrorKind::kTimedOut:
      return "timed_out";
    case ErrorKind::kCancelled:
      return "cancelled";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kDenied:
      return "denied";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "internal";
}

Error Error::in(std::string_view where) const {
  return Error{kind, std::string(where) + ": " + message, hint};
}

}  // namespace tailward
