// `tailward sockets`: the TCP options and state of every socket of a running process.
#pragma once

namespace tailward {

int run_sockets(int argc, const char* const* argv);

}  // namespace tailward
