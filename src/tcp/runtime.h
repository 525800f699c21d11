// The language runtime of a process: it decides which socket options are set when nobody asked.
//
// Plain values.
#pragma once

#include <string_view>

namespace tailward::tcp {

// kNative: a program of none of these, in C, C++, Rust, ….
enum class Runtime { kUnknown, kNative, kGo, kJava, kNode, kNginx, kPython, kRedis };
std::string_view to_string(Runtime runtime);  // "Go", "Node.js", …

}  // namespace tailward::tcp
