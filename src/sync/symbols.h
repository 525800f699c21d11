// Names and source lines of code addresses of this process, from its files' symbol tables and DWARF
// data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tailward::sync {

struct SourceLine {
  std::string function;   // demangled
  std::string linkage;    // as the linker knows it; empty for an inlined function without one
  std::string file;       // empty where there is no debug information
  int line = 0;           // 0 likewise
  int function_line = 0;  // where the function begins; 0 likewise
};

// Reads files of the local disk only, when first asked about each. Not thread-safe.
class Symbols {
 public:
  Symbols();
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  // What is at this address: inlined callees first, the function that has the code last. Empty
  // where nothing is known.
  [[nodiscard]] std::vector<SourceLine> at(std::uintptr_t address);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace tailward::sync
