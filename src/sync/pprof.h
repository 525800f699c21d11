// A contention profile as a file that `go tool pprof` and its kin read.
//
// The sample types are those of Go's mutex and block profiles: contentions/count and
// delay/nanoseconds, and the period is the number of contentions for each sample. The view of
// holders is what Go calls a mutex profile (the one who unlocks is charged with the others'
// waiting), the view of waiters what it calls a block profile. Functions, files and lines are
// looked up in this process, inlined calls included; frames of the locks themselves are told to be
// dropped. Waiting that has no stack stands under a name in brackets: the hand-over (view of
// holders) and stacks that found no room. The exact totals are among the comments.
//
// Format: https://github.com/google/pprof/blob/main/proto/profile.proto
// Thread-safe. Looking names up reads the program's files: seconds, for a large program.
#pragma once

#include <string>

#include "base/result.h"
#include "sync/contention_profile.h"

namespace tailward::sync {

// The compressed content of the file. Errors: kInternal, when zlib refuses.
Result<std::string> pprof_bytes(const ContentionSnapshot& snapshot,
                                ContentionView view = ContentionView::kHolders);

// Written beside `path` and renamed: a reader finds the old file or the new one, whole. Errors:
// kInvalid for a path that cannot be a file, kDenied, kOverloaded for a full disk, kInternal;
// nothing is left behind.
Result<void> write_pprof(const ContentionProfile& profile, const std::string& path,
                         ContentionView view = ContentionView::kHolders);

}  // namespace tailward::sync
