// The verb `tailward treat`.
#pragma once

namespace tailward {

// `argv[0]` is the verb's name. Returns the exit status: 0 done, 2 usage, nothing to treat, nothing
// measured, or something that could not be restored.
int run_treat(int argc, const char* const* argv);

}  // namespace tailward
