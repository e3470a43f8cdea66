#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "os/unfinished_output.h"

namespace stackreel::os {

namespace {

ErrorKind KindOfErrno(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
      return ErrorKind::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorKind::kPermission;
    case EOPNOTSUPP:
    case ENOSYS:
      return ErrorKind::kUnsupported;
    default:
      return ErrorKind::kIo;
  }
}

// ---- Mapped files ----
//
// A page of a mapped file that lies past the file's end (somebody truncated it) raises SIGBUS. The
// handler puts a page of zeros there, if the address is in one of our mappings; it may use only
// what is async-signal-safe, so the mappings stand in a fixed table of atomics.

struct MappedRange {
  std::atomic<uintptr_t> start = 0;
  std::atomic<uintptr_t> end = 0;
};
constexpr size_t kMaxMappedRanges = 4096;
std::array<MappedRange, kMaxMappedRanges> mapped_ranges;

bool InMappedRange(uintptr_t address) {
  return std::ranges::any_of(mapped_ranges, [address](const MappedRange& range) {
    return address >= range.start.load(std::memory_order_acquire) &&
           address < range.end.load(std::memory_order_acquire);
  });
}

void OnBusError(int signal, siginfo_t* info, void* /*context*/) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  if (InMappedRange(address) &&
      mmap(reinterpret_cast<void*>(address & ~(page - 1)), page, PROT_READ,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
    return;
  }
  ::signal(signal, SIG_DFL);  // the access happens again, and ends the process as it would have
}

void InstallBusErrorHandler() {
  static const bool kInstalled = [] {
    struct sigaction action = {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  (void)kInstalled;
}

// The slot taken, or nothing if the table is full (then a truncated file ends us, as it did).
std::optional<size_t> RegisterRange(uintptr_t start, uintptr_t end) {
  for (size_t i = 0; i < kMaxMappedRanges; ++i) {
    uintptr_t free = 0;
    if (mapped_ranges[i].start.compare_exchange_strong(free, start)) {
      mapped_ranges[i].end.store(end, std::memory_order_release);
      return i;
    }
  }
  return std::nullopt;
}

// `size` bytes of a file, `skip` behind the beginning of the mapping.
class MappedFile : public FileImage {
 public:
  MappedFile(std::string name, void* base, size_t size, size_t skip = 0)
      : name_(std::move(name)), base_(base), size_(skip + size), skip_(skip) {
    if (base_ == nullptr) return;
    InstallBusErrorHandler();
    slot_ = RegisterRange(reinterpret_cast<uintptr_t>(base_),
                          reinterpret_cast<uintptr_t>(base_) + size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() override {
    if (base_ == nullptr) return;
    if (slot_) {
      mapped_ranges[*slot_].end.store(0, std::memory_order_release);
      mapped_ranges[*slot_].start.store(0, std::memory_order_release);
    }
    munmap(base_, size_);
  }
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] ByteView bytes() const override {
    return {static_cast<const uint8_t*>(base_) + skip_, size_ - skip_};
  }

 private:
  std::string name_;
  void* base_;
  size_t size_, skip_;
  std::optional<size_t> slot_;
};

// ---- Sources ----

Result<size_t> ReadSome(int fd, std::span<uint8_t> out, std::optional<uint64_t> offset,
                        const std::string& name) {
  while (true) {
    const ssize_t n = offset ? pread(fd, out.data(), out.size(), static_cast<off_t>(*offset))
                             : read(fd, out.data(), out.size());
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR) return Fail(ErrnoError(errno, "cannot read", name));
  }
}

// Reads at `offset` until `out` is full or the file ends.
Result<size_t> ReadFullyAt(int fd, std::span<uint8_t> out, uint64_t offset,
                           const std::string& name) {
  size_t done = 0;
  while (done < out.size()) {
    TRY_ASSIGN(const size_t n, ReadSome(fd, out.subspan(done), offset + done, name));
    if (n == 0) break;
    done += n;
  }
  return done;
}

// The `size` bytes at `offset` of a file of `file_size`; null if they are not there or cannot be
// mapped. The pages are made at once. That also finds out what cannot be read, while it can still
// be told: later it would be SIGBUS.
FileImagePtr MapPiece(int fd, uint64_t file_size, uint64_t offset, size_t size) {
  static const auto kPage = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (size == 0 || offset > file_size || size > file_size - offset) return nullptr;
  const size_t skip = offset % kPage;
  void* base =
      mmap(nullptr, skip + size, PROT_READ, MAP_PRIVATE, fd, static_cast<off_t>(offset - skip));
  if (base == MAP_FAILED) return nullptr;
  auto image = std::make_shared<MappedFile>(std::string(), base, size, skip);
  return madvise(base, skip + size, MADV_POPULATE_READ) == 0 ? image : nullptr;
}

class FdSource : public FileSource {
 public:
  FdSource(Fd fd, std::string name, std::optional<uint64_t> size)
      : fd_(std::move(fd)), name_(std::move(name)), size_(size) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::optional<uint64_t> size() const override { return size_; }
  Result<size_t> Read(std::span<uint8_t> out) override {
    return ReadSome(fd_.get(), out, std::nullopt, name_);
  }
  Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    if (!size_) return Fail(ErrorKind::kUnsupported, "cannot seek in " + name_);
    return ReadFullyAt(fd_.get(), out, offset, name_);
  }
  FileImagePtr MapAt(uint64_t offset, size_t size) override;

 private:
  Fd fd_;
  std::string name_;
  std::optional<uint64_t> size_;
};

FileImagePtr FdSource::MapAt(uint64_t offset, size_t size) {
  return size_ ? MapPiece(fd_.get(), *size_, offset, size) : nullptr;
}

// ---- Outputs ----

// Less than that is gathered, where there is a buffer; more is not worth copying.
constexpr size_t kLeastDirect = size_t{16} << 10;

struct OutputTarget {
  std::string name;       // for messages
  std::string temporary;  // removed unless renamed; empty: none
  std::string final_path;
  size_t buffer_size = 0;
  bool flush_on_close = false;
};

class FdOutput : public OutputFile {
 public:
  FdOutput(Fd fd, OutputTarget target) : fd_(std::move(fd)), target_(std::move(target)) {
    if (!target_.temporary.empty()) unfinished_.emplace(target_.temporary);
  }
  FdOutput(Fd fd, std::string name) : fd_(std::move(fd)) { target_.name = std::move(name); }
  FdOutput(const FdOutput&) = delete;
  FdOutput& operator=(const FdOutput&) = delete;
  ~FdOutput() override {
    if (target_.flush_on_close) (void)Flush();
    if (!target_.temporary.empty()) unlink(target_.temporary.c_str());
    if (fd_.get() == STDOUT_FILENO) fd_.Release();
  }

  Status Write(ByteView bytes) override {
    if (buffer_.size() + bytes.size() > target_.buffer_size) TRY(Flush());
    if (bytes.size() >= std::min(target_.buffer_size, kLeastDirect)) {
      TRY(Flush());
      return WriteAll(fd_.get(), bytes, target_.name);
    }
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }
  Status WriteAt(uint64_t offset, ByteView bytes) override {
    TRY(Flush());
    while (!bytes.empty()) {
      const ssize_t n = pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == ESPIPE) {
        return Fail(ErrorKind::kUnsupported, "cannot seek in " + target_.name);
      }
      if (n < 0) return Fail(ErrnoError(errno, "cannot write", target_.name));
      bytes = bytes.subspan(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return {};
  }
  Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    TRY(Flush());
    return ReadFullyAt(fd_.get(), out, offset, target_.name);
  }
  FileImagePtr MapAt(uint64_t offset, size_t size) override {
    struct stat info = {};
    if (!Flush() || fstat(fd_.get(), &info) != 0 || !S_ISREG(info.st_mode)) return nullptr;
    return MapPiece(fd_.get(), static_cast<uint64_t>(info.st_size), offset, size);
  }
  Status Reserve(uint64_t size) override {
    const int error = posix_fallocate(fd_.get(), 0, static_cast<off_t>(size));
    if (error != 0) return Fail(ErrnoError(error, "cannot reserve space for", target_.name));
    return {};
  }
  Status Truncate(uint64_t size) override {
    buffer_.clear();
    if (ftruncate(fd_.get(), static_cast<off_t>(size)) != 0 ||
        lseek(fd_.get(), static_cast<off_t>(size), SEEK_SET) < 0) {
      return Fail(ErrnoError(errno, "cannot cut off", target_.name));
    }
    return {};
  }
  Status Commit() override {
    TRY(Flush());
    if (target_.temporary.empty()) return {};
    if (rename(target_.temporary.c_str(), target_.final_path.c_str()) != 0) {
      return Fail(ErrnoError(errno, "cannot put in place", target_.name));
    }
    target_.temporary.clear();
    unfinished_.reset();
    return {};
  }

 private:
  Status Flush() {
    if (buffer_.empty()) return {};
    Status status = WriteAll(fd_.get(), buffer_, target_.name);
    buffer_.clear();
    return status;
  }

  Fd fd_;
  OutputTarget target_;
  std::optional<UnfinishedOutput> unfinished_;  // the temporary
  std::vector<uint8_t> buffer_;
};

constexpr size_t kOutputBuffer = size_t{64} << 10;
constexpr mode_t kOutputMode = 0666;  // less the umask
constexpr mode_t kPrivateMode = 0600;

Result<Fd> OpenForWriting(const std::string& path, int flags) {
  Fd fd(open(path.c_str(), flags | O_CREAT | O_CLOEXEC, kOutputMode));
  if (!fd.valid()) return Fail(ErrnoError(errno, "cannot create", path));
  return fd;
}

bool EndIsAsked() {
  sigset_t pending;
  if (sigpending(&pending) != 0) return false;
  return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
         sigismember(&pending, SIGHUP) == 1;
}

Result<Fd> OpenFifo(const std::string& path) {
  constexpr useconds_t kLookAgain = 20'000;
  while (true) {
    Fd fd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    if (fd.valid()) {
      fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
      return fd;
    }
    if (errno != ENXIO) return Fail(ErrnoError(errno, "cannot open", path));
    if (EndIsAsked()) return Fail(ErrorKind::kIo, fmt::format("nobody has read {}", path));
    usleep(kLookAgain);
  }
}

// In the folder of `path`, with a name made from its own: as much of it as leaves room for
// `suffix`. A name that is too long by itself stays so: there can be no such file.
std::string NameBeside(const std::string& path, const std::string& suffix) {
  const size_t name_at = path.rfind('/') + 1;  // 0 if there is none
  const size_t length = path.size() - name_at;
  if (length > NAME_MAX) return path + suffix;
  return path.substr(0, name_at + std::min(length, NAME_MAX - suffix.size())) + suffix;
}

// Beside where target.name leads, so that a link stays.
Result<std::unique_ptr<OutputFile>> CreateTemporary(OutputTarget target, mode_t mode) {
  const std::string path = target.name;
  target.final_path = FollowLinks(path);
  for (int attempt = 0;; ++attempt) {
    target.temporary = NameBeside(target.final_path, fmt::format(".{}-{}.tmp", getpid(), attempt));
    Fd fd(open(target.temporary.c_str(), O_RDWR | O_EXCL | O_CREAT | O_CLOEXEC, mode));
    if (fd.valid()) return std::make_unique<FdOutput>(std::move(fd), std::move(target));
    if (errno != EEXIST || attempt == 100) return Fail(ErrnoError(errno, "cannot create", path));
  }
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

Error ErrnoError(int error, const std::string& what, const std::string& file) {
  std::string reason = std::generic_category().message(error);
  if (error == EFBIG) reason += " (the limit of ulimit -f, or of the file system)";
  if (error == EMFILE) reason += " (the limit of ulimit -n)";
  return {KindOfErrno(error), file.empty() ? fmt::format("{}: {}", what, reason)
                                           : fmt::format("{} {}: {}", what, file, reason)};
}

std::string FollowLinks(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::string at = path;
  for (int i = 0; i < kMostLinks; ++i) {
    std::array<char, PATH_MAX> target;
    const ssize_t n = readlink(at.c_str(), target.data(), target.size());
    if (n <= 0 || n == static_cast<ssize_t>(target.size())) return at;
    const std::string leads_to(target.data(), static_cast<size_t>(n));
    const size_t slash = at.rfind('/');
    at = leads_to.starts_with('/') || slash == std::string::npos
             ? leads_to
             : at.substr(0, slash + 1) + leads_to;
  }
  return path;
}

Result<std::unique_ptr<FileSource>> OpenSource(const std::string& path) {
  const bool is_stdin = path == "-";
  const std::string name = is_stdin ? "standard input" : path;
  Fd fd(is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                 : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Fail(ErrnoError(errno, "cannot open", name));
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return Fail(ErrnoError(errno, "cannot read", name));
  if (S_ISDIR(info.st_mode)) return Fail(ErrnoError(EISDIR, "cannot read", name));
  // Of a regular file as standard input, part may have been read before us: then it is a stream.
  std::optional<uint64_t> size;
  if (S_ISREG(info.st_mode) && lseek(fd.get(), 0, SEEK_CUR) == 0) {
    size = static_cast<uint64_t>(info.st_size);
  }
  return std::make_unique<FdSource>(std::move(fd), name, size);
}

Result<FileImagePtr> MapFile(const std::string& path) {
  // O_NONBLOCK: a FIFO under a name found in a recording must not make us wait for its writer.
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return Fail(ErrnoError(errno, "cannot open", path));
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return Fail(ErrnoError(errno, "cannot read", path));
  if (!S_ISREG(info.st_mode)) {
    return Fail(ErrorKind::kIo, fmt::format("cannot map {}: not a regular file", path));
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return std::make_shared<MappedFile>(path, nullptr, 0);
  void* base = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (base == MAP_FAILED) return Fail(ErrnoError(errno, "cannot map", path));
  return std::make_shared<MappedFile>(path, base, size);
}

void HoldStandardDescriptors() {
  // The lowest free number is given. Opened the wrong way round, so that use fails with EBADF.
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(standard, F_GETFD) != -1 || errno != EBADF) continue;
    (void)open("/dev/null", (standard == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  }
}

void TakeSizeLimitAsError() {
  struct sigaction action = {};
  if (sigaction(SIGXFSZ, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_handler = [](int) {};  // not ignored: that would be handed on by exec(2)
  sigaction(SIGXFSZ, &action, nullptr);
}

Result<std::string> ReadTextFile(const std::string& path, size_t limit) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Fail(ErrnoError(errno, "cannot open", path));
  // Files of /proc have no size: then the buffer grows with what was read. One byte more than the
  // size finds the end without growing.
  struct stat info = {};
  size_t room = 65536;
  if (fstat(fd.get(), &info) == 0 && info.st_size > 0) {
    room = std::min(static_cast<size_t>(info.st_size), limit) + 1;
  }
  // Some files of tracefs give all at once or the rest never (header_page): the first read has to
  // be a large one.
  std::string text;
  text.reserve(room);
  while (true) {
    const size_t old_size = text.size();
    if (text.capacity() == old_size) text.reserve(2 * old_size);
    Result<size_t> n = size_t{0};
    text.resize_and_overwrite(text.capacity(), [&](char* data, size_t size) {
      n = ReadSome(fd.get(), {reinterpret_cast<uint8_t*>(data) + old_size, size - old_size},
                   std::nullopt, path);
      return old_size + n.value_or(0);
    });
    if (!n) return Fail(std::move(n.error()));
    if (*n == 0) return text;
    if (text.size() > limit) {
      return Fail(ErrorKind::kIo, fmt::format("cannot read {}: larger than {} bytes", path, limit));
    }
  }
}

Status WriteAll(int fd, ByteView bytes, const std::string& file) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail(ErrnoError(errno, "cannot write", file));
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Result<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path) {
  OutputTarget target;
  target.name = path;
  target.buffer_size = kOutputBuffer;
  if (path == "-") {
    target.name = "standard output";
    target.flush_on_close = true;
    return std::make_unique<FdOutput>(Fd(STDOUT_FILENO), std::move(target));
  }
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    TRY_ASSIGN(Fd fd, OpenForWriting(path, O_WRONLY));
    target.flush_on_close = true;
    return std::make_unique<FdOutput>(std::move(fd), std::move(target));
  }
  return CreateTemporary(std::move(target), kOutputMode);
}

Result<std::unique_ptr<OutputFile>> OutputFile::CreateBeside(const std::string& path) {
  OutputTarget target;
  target.name = path;
  return CreateTemporary(std::move(target), kPrivateMode);
}

Result<std::unique_ptr<OutputFile>> OutputFile::CreateInPlace(const std::string& path) {
  if (path == "-") {
    return std::make_unique<FdOutput>(Fd(STDOUT_FILENO), "standard output");
  }
  struct stat info = {};
  const bool is_fifo = stat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode);
  TRY_ASSIGN(Fd fd, is_fifo ? OpenFifo(path) : OpenForWriting(path, O_RDWR | O_TRUNC));
  return std::make_unique<FdOutput>(std::move(fd), path);
}

Result<std::unique_ptr<OutputFile>> OutputFile::CreateUnnamed(const std::string& folder) {
  const char* temporary = getenv("TMPDIR");
  if (temporary == nullptr || *temporary == 0) temporary = "/tmp";
  std::string path = fmt::format("{}/stackreel-XXXXXX", folder.empty() ? temporary : folder);
  Fd fd(mkostemp(path.data(), O_CLOEXEC));
  if (!fd.valid()) return Fail(ErrnoError(errno, "cannot create a temporary file", path));
  unlink(path.c_str());
  return std::make_unique<FdOutput>(std::move(fd), "the temporary file");
}

}  // namespace stackreel::os
