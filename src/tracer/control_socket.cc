#include "tracer/control_socket.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "tracedata/control_message.h"

namespace stackreel::tracer {

namespace {

// A trace that is writing to a slow disk answers late; one that is stopped never does.
constexpr time_t kPatienceSeconds = 3;
constexpr int kPatiencesWhileItRuns = 10;
constexpr time_t kRequestSeconds = 2;
// Who asks may have given up meanwhile, so nothing is done before both have said another word: the
// trace that it is there, who asks that it waits still.
constexpr uint8_t kReady = 'r';
constexpr uint8_t kGoOn = 'g';

bool IsOurDirectory(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & 077) == 0;
}

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Fail(ErrorKind::kUsage,
                fmt::format("the path of the control socket is too long: {}", path));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<os::Fd> MakeSocket(time_t patience) {
  os::Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Fail(os::ErrnoError(errno, "cannot make a socket"));
  const timeval timeout = {.tv_sec = patience, .tv_usec = 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  return fd;
}

// Who is at the other end; of a socket that listens, who made it listen.
std::optional<ucred> PeerOf(int fd) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}
// Whether that is this user, or root.
bool IsOurs(int fd) {
  const std::optional<ucred> peer = PeerOf(fd);
  return peer && (peer->uid == geteuid() || peer->uid == 0);
}

// Whether a process is held by a signal or a tracer: proc_pid_stat(5), the field behind its name.
bool IsStopped(pid_t pid) {
  const auto text = os::ReadTextFile(fmt::format("/proc/{}/stat", pid));
  if (!text) return false;
  const size_t name_end = text->rfind(") ");
  if (name_end == std::string::npos || name_end + 2 >= text->size()) return false;
  const char state = (*text)[name_end + 2];
  return state == 'T' || state == 't';
}

Result<std::vector<uint8_t>> Receive(int fd) {
  std::vector<uint8_t> bytes(tracedata::kMaxControlMessage);
  ssize_t got = 0;
  do {
    got = recv(fd, bytes.data(), bytes.size(), MSG_TRUNC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return Fail(os::ErrnoError(errno, "no answer comes over the control socket"));
  if (got == 0) return Fail(ErrorKind::kIo, "the other end of the control socket hung up");
  if (static_cast<size_t>(got) > bytes.size()) {
    return Fail(ErrorKind::kDamaged, "a control message is too long");
  }
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

Status ReceiveWord(int fd, uint8_t word) {
  TRY_ASSIGN(const std::vector<uint8_t> bytes, Receive(fd));
  if (bytes.size() == 1 && bytes[0] == word) return {};
  return Fail(ErrorKind::kDamaged, "the other end of the control socket is of another version");
}

Status Send(int fd, ByteView bytes) {
  ssize_t put = 0;
  do {
    put = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (put < 0 && errno == EINTR);
  if (put == static_cast<ssize_t>(bytes.size())) return {};
  return Fail(os::ErrnoError(errno, "cannot write to the control socket"));
}

}  // namespace

Result<std::string> ControlDirectory() {
  if (const char* named = std::getenv("XDG_RUNTIME_DIR"); named != nullptr && *named == '/') {
    if (IsOurDirectory(named)) return std::string(named);
  }
  std::string path = fmt::format("/run/user/{}", geteuid());
  if (IsOurDirectory(path)) return path;
  path = fmt::format("/tmp/stackreel-{}", geteuid());
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Fail(os::ErrnoError(errno, "cannot make the directory", path));
  }
  if (IsOurDirectory(path)) return path;
  return Fail(Error(ErrorKind::kPermission,
                    fmt::format("{} is somebody else's, or others may write to it", path))
                  .WithCure("set XDG_RUNTIME_DIR to a directory of yours with mode 0700"));
}

Result<std::string> ControlPath(uint32_t pid) {
  TRY_ASSIGN(const std::string directory, ControlDirectory());
  return fmt::format("{}/stackreel-{}.sock", directory, pid);
}

Result<std::unique_ptr<ControlServer>> ControlServer::Listen(uint32_t pid) {
  TRY_ASSIGN(std::string path, ControlPath(pid));
  TRY_ASSIGN(const sockaddr_un address, AddressOf(path));
  TRY_ASSIGN(os::Fd fd, MakeSocket(kRequestSeconds));
  // What is there was left by a tracer that died: the agent says that nobody else traces it.
  unlink(path.c_str());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Fail(os::ErrnoError(errno, "cannot make the control socket", path));
  }
  constexpr int kBacklog = 8;
  // Nobody can connect before listen().
  if (chmod(path.c_str(), 0600) != 0 || listen(fd.get(), kBacklog) != 0) {
    Error error = os::ErrnoError(errno, "cannot open the control socket", path);
    unlink(path.c_str());
    return Fail(std::move(error));
  }
  return std::unique_ptr<ControlServer>(new ControlServer(std::move(fd), std::move(path)));
}

ControlServer::~ControlServer() { unlink(path_.c_str()); }

Result<ControlServer::Conversation> ControlServer::Accept() const {
  Conversation conversation;
  conversation.peer = os::Fd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!conversation.peer.valid()) {
    return Fail(os::ErrnoError(errno, "nobody wants to speak over the control socket"));
  }
  const int fd = conversation.peer.get();
  if (!IsOurs(fd)) return Fail(ErrorKind::kPermission, "another user's request was not heard");
  const timeval timeout = {.tv_sec = kRequestSeconds, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  TRY_ASSIGN(conversation.request, Receive(fd));
  TRY(Send(fd, {&kReady, 1}));
  TRY(ReceiveWord(fd, kGoOn));
  return conversation;
}

Status ControlServer::Answer(Conversation conversation, ByteView answer) {
  return Send(conversation.peer.get(), answer);
}

namespace {

bool IsTimeout(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

// How far a request is.
enum class Asked : uint8_t { kNothingDone, kTakenUp };

// Waits until something can be received. Fails where who traces `pid` is stopped, or is silent.
Status AwaitAnswer(int fd, uint32_t pid, Asked asked) {
  const std::optional<ucred> peer = PeerOf(fd);
  const pid_t tracer = peer ? peer->pid : 0;
  for (int i = 1;; ++i) {
    pollfd event = {.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = poll(&event, 1, kPatienceSeconds * 1000);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR)
      return Fail(os::ErrnoError(errno, "cannot wait for the trace"));
    const bool is_stopped = IsStopped(tracer);
    if (!is_stopped && i < kPatiencesWhileItRuns) continue;
    const bool goes_on = asked == Asked::kTakenUp;
    return Fail(
        Error(ErrorKind::kIo, fmt::format("process {}, which traces process {}, does not answer{}; "
                                          "{}",
                                          tracer, pid, is_stopped ? ": it is stopped" : "",
                                          goes_on ? "what was asked for is done when it goes on"
                                                  : "nothing was done"))
            .WithCure(is_stopped ? fmt::format("let it go on: kill -CONT {}", tracer)
                                 : "ask again; see what it waits for: its disk may be slow"));
  }
}

}  // namespace

Result<std::vector<uint8_t>> AskTrace(uint32_t pid, ByteView request) {
  TRY_ASSIGN(const std::string path, ControlPath(pid));
  TRY_ASSIGN(const sockaddr_un address, AddressOf(path));
  TRY_ASSIGN(const os::Fd fd, MakeSocket(kPatienceSeconds));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) {
      return Fail(Error(ErrorKind::kNotFound, fmt::format("nobody traces process {}", pid))
                      .WithCure(fmt::format("trace it: stackreel trace -p {} -P PATTERN", pid)));
    }
    if (IsTimeout(errno)) {
      return Fail(
          Error(ErrorKind::kIo,
                fmt::format("who traces process {} does not answer: others wait for it too", pid))
              .WithCure("see whether that stackreel trace is stopped (state T in ps), and "
                        "let it go on: kill -CONT"));
    }
    return Fail(os::ErrnoError(errno, "cannot speak to the trace over", path));
  }
  if (!IsOurs(fd.get())) {
    return Fail(ErrorKind::kPermission,
                fmt::format("{} is held open by another user, and is not trusted", path));
  }
  TRY(Send(fd.get(), request));
  TRY(AwaitAnswer(fd.get(), pid, Asked::kNothingDone));
  TRY(ReceiveWord(fd.get(), kReady));
  TRY(Send(fd.get(), {&kGoOn, 1}));
  TRY(AwaitAnswer(fd.get(), pid, Asked::kTakenUp));
  return Receive(fd.get());
}

}  // namespace stackreel::tracer
