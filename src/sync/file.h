// Writing a file so that a reader finds the old content or the new, never half of it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tailward::sync {

// Writes beside `path` and renames. Symbolic links are followed. On an error (the kinds are those
// of sync/pprof.h) the temporary file is gone and an existing file is as it was. Thread-safe.
Result<void> write_whole(const std::string& path, std::string_view bytes);

}  // namespace tailward::sync
