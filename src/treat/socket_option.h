// Reading, setting and putting back one option of a socket through a descriptor of ours, which may
// be a duplicate of another process's.
//
// Thread safety: pure calls to the system.
#pragma once

#include "base/result.h"
#include "treat/setting.h"

namespace tailward::treat {

// Errors of all: kUnsupported (this kernel does not have the option), kInvalid (it refuses the
// value, or this is no TCP socket), kDenied, kInternal.

Result<State> read_option(int fd, Option option);

// Sets it and returns what the kernel made of it.
Result<State> set_option(int fd, const Setting& setting);

// Restores it and reads it again. The error says what is different now. A buffer's size is set
// first, then its lock, because setting the size locks it.
Result<void> restore_option(int fd, Option option, const State& old);

// Sets and restores it on a socket of ours, so that what this kernel or our privileges do not allow
// is found before somebody else's socket is touched.
Result<void> rehearse(const Setting& setting, const State& old);

}  // namespace tailward::treat
