#include "sync/file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace tailward::sync {
namespace {

namespace fs = std::filesystem;

constexpr int kNamesMax = 100;  // temporary names tried before giving up

tl::unexpected<Error> failure(int error, const std::string& path) {
  const std::error_code code(error, std::generic_category());
  const std::string message = fmt::format("cannot write {}: {}", path, code.message());
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return fail(ErrorKind::kOverloaded, message, "free some space, or write to another disk");
    case EACCES:
    case EPERM:
    case EROFS:
      return fail(ErrorKind::kDenied, message, "choose a folder you may write to");
    case ENOENT:
    case ENOTDIR:
      return fail(ErrorKind::kInvalid, message, "make the folder first");
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
      return fail(ErrorKind::kInvalid, message, "give the name of a file");
    default:
      return fail(ErrorKind::kInternal, message);
  }
}

struct Temporary {
  std::string path;
  std::FILE* file;
};

// A new file beside `path`; without one, errno says why.
Temporary create_beside(const std::string& path) {
  for (int n = 0; n < kNamesMax; ++n) {
    std::string name = fmt::format("{}.{}.tmp", path, n);
    std::FILE* file = std::fopen(name.c_str(), "wbxe");  // x: it must be new
    if (file != nullptr || errno != EEXIST) return {std::move(name), file};
  }
  return {{}, nullptr};
}

}  // namespace

Result<void> write_whole(const std::string& path, std::string_view bytes) {
  std::error_code unknown;
  const fs::file_status existing = fs::status(path, unknown);
  if (fs::is_directory(existing)) return failure(EISDIR, path);
  if (fs::exists(existing) && !fs::is_regular_file(existing)) {
    return fail(ErrorKind::kInvalid, fmt::format("cannot write {}: not a regular file", path),
                "give the name of a file");
  }
  std::error_code none;
  const fs::path target = fs::exists(existing) ? fs::canonical(path, none) : fs::path(path);
  Temporary temporary = create_beside(target.string());
  if (temporary.file == nullptr) return failure(errno, path);
  int error = 0;
  if (std::fwrite(bytes.data(), 1, bytes.size(), temporary.file) != bytes.size()) error = errno;
  if (std::fclose(temporary.file) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(temporary.path.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return {};
  std::remove(temporary.path.c_str());
  return failure(error, path);
}

}  // namespace tailward::sync
