// `tailward diagnose`.
#pragma once

namespace tailward {

int run_diagnose(int argc, const char* const* argv);

}  // namespace tailward
