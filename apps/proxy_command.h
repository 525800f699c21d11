// The verb `tailward proxy`: reads its command line, wires, runs until a signal.
#pragma once

namespace tailward {

// `argv[0]` is the verb's name. Returns the exit status: 0 done, 2 usage or environment error.
int run_proxy(int argc, const char* const* argv);

}  // namespace tailward
