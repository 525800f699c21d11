#include "sync/modules.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>

namespace tailward::sync {
namespace {

constexpr std::size_t kNoteAlign = 4;

std::size_t aligned(std::size_t size) { return (size + kNoteAlign - 1) / kNoteAlign * kNoteAlign; }

// The build id in a note segment: notes follow each other as header, name, description, padded to 4
// bytes.
std::string build_id_in(std::span<const unsigned char> notes) {
  constexpr std::string_view kOwner("GNU", 4);
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof note);
    const std::size_t name_at = sizeof note;
    const std::size_t text_at = name_at + aligned(note.n_namesz);
    const std::size_t end = text_at + aligned(note.n_descsz);
    if (end < text_at || end > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == kOwner.size() &&
        std::memcmp(notes.data() + name_at, kOwner.data(), kOwner.size()) == 0) {
      std::string hex;
      for (const unsigned char byte : notes.subspan(text_at, note.n_descsz)) {
        hex += fmt::format("{:02x}", byte);
      }
      return hex;
    }
    notes = notes.subspan(end);
  }
  return {};
}

std::string path_of(const dl_phdr_info& info, bool program) {
  if (!program && info.dlpi_name != nullptr && *info.dlpi_name != '\0') return info.dlpi_name;
  std::error_code ignored;
  return program ? std::filesystem::read_symlink("/proc/self/exe", ignored).string() : "";
}

int add_module(dl_phdr_info* info, std::size_t, void* state) {
  auto& modules = *static_cast<std::vector<Module>*>(state);
  const std::string path = path_of(*info, modules.empty());
  std::string build_id;
  const std::span headers(info->dlpi_phdr, info->dlpi_phnum);
  for (const auto& header : headers) {
    if (header.p_type != PT_NOTE || !build_id.empty()) continue;
    build_id = build_id_in(
        {reinterpret_cast<const unsigned char*>(info->dlpi_addr + header.p_vaddr), header.p_memsz});
  }
  for (const auto& header : headers) {
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    const std::uintptr_t start = info->dlpi_addr + header.p_vaddr;
    modules.push_back({start, start + header.p_memsz, header.p_offset, path, build_id});
  }
  return 0;
}

}  // namespace

std::vector<Module> loaded_modules() {
  std::vector<Module> modules;
  dl_iterate_phdr(add_module, &modules);
  return modules;
}

}  // namespace tailward::sync
