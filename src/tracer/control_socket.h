// The socket by which a running trace is asked and changed. Nobody but the user who traces (and
// root) is listened to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "os/file.h"

namespace stackreel::tracer {

// Where the sockets of this user are: $XDG_RUNTIME_DIR, else /run/user/UID, else
// /tmp/stackreel-UID, which is made, and refused if it is somebody else's or open to others.
Result<std::string> ControlDirectory();
// Of the trace of a process.
Result<std::string> ControlPath(uint32_t pid);

class ControlServer {
 public:
  // Listens for who wants to speak of the trace of process `pid`.
  static Result<std::unique_ptr<ControlServer>> Listen(uint32_t pid);
  // Removes the socket.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // Can be read from when somebody wants to speak.
  [[nodiscard]] int fd() const { return socket_.get(); }
  struct Conversation {
    os::Fd peer;
    std::vector<uint8_t> request;
  };
  // Takes the next one; fails where it is another user's, says nothing, or has given up meanwhile.
  Result<Conversation> Accept() const;
  // Answers, and hangs up.
  static Status Answer(Conversation conversation, ByteView answer);

 private:
  ControlServer(os::Fd socket, std::string path)
      : socket_(std::move(socket)), path_(std::move(path)) {}
  os::Fd socket_;
  std::string path_;
};

// Asks the trace of process `pid`, and waits for the answer. kNotFound: nobody traces it, as far as
// this user can see. Where nobody takes the request up, it is withdrawn: nothing is done later.
Result<std::vector<uint8_t>> AskTrace(uint32_t pid, ByteView request);

}  // namespace stackreel::tracer
