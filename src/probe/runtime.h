// Which language runtime a process runs in, from its program file and what it has mapped.
//
// Thread safety: pure calls to the system.
#pragma once

#include <string_view>

#include "tcp/runtime.h"

namespace tailward::probe {

// kUnknown when the process may not be looked into, or is gone.
tcp::Runtime detect_runtime(int pid);

// What that goes by: the name of the program file, the beginning of its content, and the list of
// its mappings (proc_pid_maps(5)). Pure.
tcp::Runtime runtime_of(std::string_view program, std::string_view beginning,
                        std::string_view maps);

}  // namespace tailward::probe
