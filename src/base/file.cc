#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace tailward {
namespace {

constexpr int kMaxNames = 100;  // temporary names tried before giving up

class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  // Reports what close() has to say: on some file systems a full disk shows only here.
  [[nodiscard]] bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

tl::unexpected<Error> failure(int error, const std::string& path) {
  const auto say = [&](ErrorKind kind, std::string hint) {
    return fail(kind, fmt::format("cannot write {}: {}", path, std::strerror(error)),
                std::move(hint));
  };
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return say(ErrorKind::kOverloaded, "free some space, or write to another disk");
    case EACCES:
    case EPERM:
    case EROFS:
      return say(ErrorKind::kDenied,
                 fmt::format("choose a folder you may write to; {} is not", folder_of(path)));
    case ENOENT:
    case ENOTDIR:
      return say(ErrorKind::kInvalid, fmt::format("make the folder {} first", folder_of(path)));
    case EISDIR:
      return say(ErrorKind::kInvalid, "give the name of a file, not of a folder");
    case ENAMETOOLONG:
    case ELOOP:
      return say(ErrorKind::kInvalid, "choose another name");
    default:
      return say(ErrorKind::kInternal, "try another folder");
  }
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    // Ctrl-C arrives while a result is written: it is finished first.
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Result<void> write_directly(const std::string& path, std::string_view text) {
  OpenFile file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0 || !write_all(file.get(), text) || !file.close()) return failure(errno, path);
  return {};
}

// The file behind symbolic links, so that renaming replaces it and not the link.
std::string target_of(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), ::free);
  return real ? real.get() : path;
}

struct Temporary {
  std::string path;
  OpenFile file;
};

std::optional<Temporary> create_beside(const std::string& path) {
  constexpr mode_t kAnybody = 0666;  // the umask decides
  for (int n = 0; n < kMaxNames; ++n) {
    // In the same folder, since rename() works within one file system only.
    std::string name = fmt::format("{}.{}-{}.tmp", path, ::getpid(), n);
    OpenFile file(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kAnybody));
    if (file.get() >= 0) return Temporary{std::move(name), std::move(file)};
    if (errno != EEXIST) return std::nullopt;
  }
  return std::nullopt;
}

// The rename itself lasts only once the folder is on disk. Not every file system can do that, and
// the content is complete either way: failures do not matter.
void flush_folder(const std::string& folder) {
  const OpenFile fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() >= 0) ::fsync(fd.get());
}

}  // namespace

Result<void> write_file_atomically(const std::string& path, std::string_view text) {
  struct stat existing {};
  const bool exists = ::stat(path.c_str(), &existing) == 0;
  if (exists && S_ISDIR(existing.st_mode)) return failure(EISDIR, path);
  // A pipe or a device has no old content to protect and cannot be renamed over.
  if (exists && !S_ISREG(existing.st_mode)) return write_directly(path, text);

  const std::string target = target_of(path);
  std::optional<Temporary> temporary = create_beside(target);
  if (!temporary) return failure(errno, path);
  const int fd = temporary->file.get();
  constexpr mode_t kPermissions = 07777;
  if ((exists && ::fchmod(fd, existing.st_mode & kPermissions) != 0) || !write_all(fd, text) ||
      ::fsync(fd) != 0 || !temporary->file.close() ||
      ::rename(temporary->path.c_str(), target.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary->path.c_str());
    return failure(error, path);
  }
  flush_folder(folder_of(target));
  return {};
}

}  // namespace tailward
