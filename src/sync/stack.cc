#include "sync/stack.h"

#include <unwind.h>

namespace tailward::sync {
namespace {

struct Walk {
  Stack& stack;
  std::uintptr_t first;
  bool found;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* state) {
  Walk& walk = *static_cast<Walk*>(state);
  const std::uintptr_t address = _Unwind_GetIP(context);
  if (address == 0) return _URC_END_OF_STACK;
  walk.found = walk.found || address == walk.first;
  if (!walk.found) return _URC_NO_REASON;
  if (walk.stack.depth == kFramesMax) {
    walk.stack.truncated = true;
    return _URC_END_OF_STACK;
  }
  walk.stack.frames[walk.stack.depth++] = address;
  return _URC_NO_REASON;
}

}  // namespace

[[gnu::noinline]] void capture_stack(Stack& stack, const void* return_address) {
  stack.depth = 0;
  stack.truncated = false;
  Walk walk{stack, reinterpret_cast<std::uintptr_t>(return_address), false};
  _Unwind_Backtrace(visit, &walk);
  if (walk.found) return;
  // Signed return addresses look different to the two readers: a few frames of ours too many, then.
  walk.found = true;
  _Unwind_Backtrace(visit, &walk);
}

}  // namespace tailward::sync
