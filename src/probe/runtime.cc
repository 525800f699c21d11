#include "probe/runtime.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "probe/proc_files.h"
#include "probe/sockets.h"

namespace tailward::probe {
namespace {

using tcp::Runtime;

// Where the Go linker leaves its build id, an ELF note of type 4 and name "Go"
// (cmd/internal/buildid reads as much).
constexpr std::size_t kNoteWithin = std::size_t{32} << 10;
constexpr std::string_view kGoNote{"\x04\x00\x00\x00Go\x00\x00", 8};

struct Sign {
  std::string_view text;
  Runtime runtime;
};
constexpr Sign kPrograms[] = {{"nginx", Runtime::kNginx},
                              {"openresty", Runtime::kNginx},
                              {"redis-server", Runtime::kRedis},
                              {"redis-check-rdb", Runtime::kRedis},  // the same file, by a link
                              {"java", Runtime::kJava},
                              {"node", Runtime::kNode},
                              {"nodejs", Runtime::kNode}};
// Embedded ones, and those behind launchers of another name.
constexpr Sign kLibraries[] = {{"/libjvm.so", Runtime::kJava},
                               {"/libnode.so", Runtime::kNode},
                               {"/libpython", Runtime::kPython}};

}  // namespace

Runtime runtime_of(std::string_view program, std::string_view beginning, std::string_view maps) {
  program.remove_prefix(program.rfind('/') + 1);
  constexpr std::string_view kDeleted = " (deleted)";  // replaced by an update since it was started
  if (program.ends_with(kDeleted)) program.remove_suffix(kDeleted.size());
  for (const Sign& sign : kPrograms) {
    if (program == sign.text) return sign.runtime;
  }
  if (program.starts_with("python") || program.starts_with("pypy")) return Runtime::kPython;
  for (const Sign& sign : kLibraries) {
    if (maps.find(sign.text) != std::string_view::npos) return sign.runtime;
  }
  if (beginning.substr(0, kNoteWithin).find(kGoNote) != std::string_view::npos) {
    return Runtime::kGo;
  }
  return beginning.starts_with(
             "\x7f"
             "ELF")
             ? Runtime::kNative
             : Runtime::kUnknown;
}

Runtime detect_runtime(int pid) {
  const std::string link = fmt::format("/proc/{}/exe", pid);
  char program[4096];
  const ssize_t size = ::readlink(link.c_str(), program, sizeof program);
  if (size <= 0) return Runtime::kUnknown;
  std::string beginning(kNoteWithin, '\0');
  const Descriptor file(::open(link.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = file.valid() ? ::pread(file.get(), beginning.data(), beginning.size(), 0) : 0;
  beginning.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::string maps = read_small_file(fmt::format("/proc/{}/maps", pid)).value_or("");
  return runtime_of({program, static_cast<std::size_t>(size)}, beginning, maps);
}

}  // namespace tailward::probe
