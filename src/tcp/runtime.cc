#include "tcp/runtime.h"

namespace tailward::tcp {

std::string_view to_string(Runtime runtime) {
  switch (runtime) {
    case Runtime::kUnknown:
      break;
    case Runtime::kNative:
      return "native";
    case Runtime::kGo:
      return "Go";
    case Runtime::kJava:
      return "Java";
    case Runtime::kNode:
      return "Node.js";
    case Runtime::kNginx:
      return "nginx";
    case Runtime::kPython:
      return "Python";
    case Runtime::kRedis:
      return "Redis";
  }
  return "unknown";
}

}  // namespace tailward::tcp
