#include "sync/symbols.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <system_error>

namespace tailward::sync {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

// DIEs come in arrays that the caller frees.
struct Scopes {
  Dwarf_Die* dies = nullptr;
  int count = 0;
  Scopes() = default;
  Scopes(const Scopes&) = delete;
  Scopes& operator=(const Scopes&) = delete;
  ~Scopes() { std::free(dies); }
  [[nodiscard]] std::span<Dwarf_Die> view() const {
    return {dies, count > 0 ? static_cast<std::size_t>(count) : 0};
  }
};

int number(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr_integrate(&die, name, &attribute) == nullptr ||
      dwarf_formudata(&attribute, &value) != 0) {
    return 0;
  }
  return static_cast<int>(value);
}

void name_function(Dwarf_Die& die, SourceLine& line) {
  Dwarf_Attribute attribute;
  const char* linkage = nullptr;
  if (dwarf_attr_integrate(&die, DW_AT_linkage_name, &attribute) != nullptr) {
    linkage = dwarf_formstring(&attribute);
  }
  const char* plain = dwarf_diename(&die);
  if (linkage != nullptr) {
    line.linkage = linkage;
    line.function = demangled(linkage);
  } else if (plain != nullptr) {
    line.function = plain;
  }
  dwarf_decl_line(&die, &line.function_line);
}

std::string call_file(Dwarf_Die& cu, Dwarf_Die& inlined) {
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  const auto index = static_cast<std::size_t>(number(inlined, DW_AT_call_file));
  if (dwarf_getsrcfiles(&cu, &files, &count) != 0 || index >= count) return {};
  const char* name = dwarf_filesrc(files, index, nullptr, nullptr);
  return name != nullptr ? name : "";
}

// The innermost function scope at `address` (of the unit, without bias) and its parents as they are
// nested in the code: dwarf_getscopes() itself goes on in the inlined function's own surroundings.
bool function_scopes(Dwarf_Die& cu, Dwarf_Addr address, Scopes& parents) {
  Scopes scopes;
  scopes.count = dwarf_getscopes(&cu, address, &scopes.dies);
  for (Dwarf_Die& die : scopes.view()) {
    const int tag = dwarf_tag(&die);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    parents.count = dwarf_getscopes_die(&die, &parents.dies);
    return parents.count > 0;
  }
  return false;
}

constexpr Dwfl_Callbacks kCallbacks = {
    .find_elf = dwfl_linux_proc_find_elf,
    // By build id on this disk. The standard one may ask a server of debug files, and take minutes.
    .find_debuginfo = dwfl_build_id_find_debuginfo,
    .section_address = nullptr,
    .debuginfo_path = nullptr};

// Our own process id, in the namespace whose /proc this is.
int self() {
  std::error_code failed;
  const std::string text = std::filesystem::read_symlink("/proc/self", failed).string();
  int pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  return pid;
}

}  // namespace

struct Symbols::Session {
  Dwfl* dwfl = nullptr;
};

Symbols::Symbols() : session_(std::make_unique<Session>()) {
  session_->dwfl = dwfl_begin(&kCallbacks);
  if (session_->dwfl == nullptr) return;
  dwfl_report_begin(session_->dwfl);
  if (dwfl_linux_proc_report(session_->dwfl, self()) != 0 ||
      dwfl_report_end(session_->dwfl, nullptr, nullptr) != 0) {
    dwfl_end(session_->dwfl);
    session_->dwfl = nullptr;
  }
}

Symbols::~Symbols() {
  if (session_->dwfl != nullptr) dwfl_end(session_->dwfl);
}

std::vector<SourceLine> Symbols::at(std::uintptr_t address) {
  Dwfl_Module* module =
      session_->dwfl != nullptr ? dwfl_addrmodule(session_->dwfl, address) : nullptr;
  if (module == nullptr) return {};

  std::string file;
  int line_number = 0;
  if (Dwfl_Line* line = dwfl_module_getsrc(module, address); line != nullptr) {
    const char* name = dwfl_lineinfo(line, nullptr, &line_number, nullptr, nullptr, nullptr);
    if (name != nullptr) file = name;
  }

  std::vector<SourceLine> lines;
  Dwarf_Addr bias = 0;
  Dwarf_Die* cu = dwfl_module_addrdie(module, address, &bias);
  Scopes scopes;
  if (cu != nullptr && function_scopes(*cu, address - bias, scopes)) {
    for (Dwarf_Die& die : scopes.view()) {
      const int tag = dwarf_tag(&die);
      if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
      SourceLine& line = lines.emplace_back();
      name_function(die, line);
      line.file = file;
      line.line = line_number;
      if (tag == DW_TAG_subprogram) break;
      file = call_file(*cu, die);
      line_number = number(die, DW_AT_call_line);
    }
  }
  // The linker's name is the full one; DWARF's may lack namespace and class.
  const char* symbol = dwfl_module_addrname(module, address);
  if (lines.empty() && symbol == nullptr) return {};
  if (lines.empty()) lines.push_back({"", "", file, line_number, 0});
  if (symbol != nullptr) {
    lines.back().linkage = symbol;
    lines.back().function = demangled(symbol);
  }
  return lines;
}

}  // namespace tailward::sync
