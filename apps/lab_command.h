// The verbs `tailward lab` and `tailward demo`.
#pragma once

namespace tailward {

// `argv[0]` is the verb's name. Returns the exit status: 0 done, 1 a claim does not hold, 2 usage
// or environment.
int run_lab(int argc, const char* const* argv);
int run_demo(int argc, const char* const* argv);
// The server of an experiment, started by the two above; not for people.
int run_lab_server(int argc, const char* const* argv);

}  // namespace tailward
