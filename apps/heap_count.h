// Counts what this program allocates, by replacing the global operator new and delete.
#pragma once

#include "lab/arm.h"

namespace tailward {

// Thread-safe. `reset` starts a new peak at what is live now.
lab::HeapUse heap_use(bool reset);

}  // namespace tailward
