// `tailward lab serve` and `tailward lab truth`: faulty servers, and diagnosis scored against them.
#pragma once

namespace tailward {

int run_lab_serve(int argc, const char* const* argv);
int run_lab_truth(int argc, const char* const* argv);
// The server alone, started by the two above; not for people.
int run_lab_sick_server(int argc, const char* const* argv);

}  // namespace tailward
