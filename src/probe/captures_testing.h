// Captures that others made, for tests: where they are, if they are there.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace tailward::probe::testing {

inline std::filesystem::path captures_folder() {
  if (const char* given = std::getenv("TAILWARD_CAPTURES")) return given;
  return std::filesystem::path(__FILE__).parent_path() / "../../../shared/captures";
}

inline std::vector<std::filesystem::path> capture_files() {
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"robustness", "known"}) {
    if (!std::filesystem::is_directory(captures_folder() / folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(captures_folder() / folder)) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace tailward::probe::testing
