// The program and the shared libraries that this process runs, as the dynamic linker knows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tailward::sync {

// One executable segment.
struct Module {
  std::uintptr_t start = 0;
  std::uintptr_t limit = 0;  // exclusive
  std::uint64_t file_offset = 0;
  std::string path;
  std::string build_id;  // lower-case hexadecimal; empty where the file carries none
};

// The program first. Thread-safe.
std::vector<Module> loaded_modules();

}  // namespace tailward::sync
