// The verb `tailward plan`.
#pragma once

namespace tailward {

// `argv[0]` is the verb's name. Returns the exit status: 0 done, 2 usage, or a log that cannot be
// read.
int run_plan(int argc, const char* const* argv);

}  // namespace tailward
