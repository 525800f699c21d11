// Writing an output file so that a reader finds the old content or the new, never half of it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tailward {

// Writes `text` to a temporary file beside `path`, flushes it to the disk and renames it. Symbolic
// links are followed; an existing file keeps its permission bits. What is not a regular file (a
// pipe, /dev/stdout) is written directly. "-" is for the caller to handle. On an error (kDenied,
// kInvalid for a path that cannot be, kOverloaded for a full disk, kInternal) the temporary file is
// gone and an existing file is as it was. Safe from several threads.
Result<void> write_file_atomically(const std::string& path, std::string_view text);

}  // namespace tailward
