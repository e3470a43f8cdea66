// Error and Result: how every folder says that something could not be done.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>

namespace stackreel {

// What kind of failure it is; the command line maps these to exit codes.
enum class ErrorKind : uint8_t {
  kUsage,        // the caller asked for something that makes no sense
  kNotFound,     // no such file, process, symbol, event
  kPermission,   // the kernel or a file's mode refused
  kUnsupported,  // this machine, kernel or format version cannot
  kDamaged,      // input bytes are not what their format demands
  kIo,           // reading or writing failed
  kInterrupted,  // a signal or a limit ended it
};

// One failure. `message` says what failed and why (value read, value needed). For damaged input,
// `file` and `offset` say where. `cure` holds the smallest remedy first, one a line; may be empty.
struct Error {
  ErrorKind kind = ErrorKind::kIo;
  std::string message;
  std::string file;
  std::optional<uint64_t> offset;
  std::string cure;

  Error() = default;
  Error(ErrorKind k, std::string text) : kind(k), message(std::move(text)) {}

  Error&& At(std::string file_name, std::optional<uint64_t> file_offset = std::nullopt) && {
    file = std::move(file_name);
    offset = file_offset;
    return std::move(*this);
  }
  Error&& AtOffset(uint64_t file_offset) && {
    offset = file_offset;
    return std::move(*this);
  }
  Error&& WithCure(std::string text) && {
    cure = std::move(text);
    return std::move(*this);
  }
  // "FILE: offset 0x1f0: MESSAGE", without the cure.
  [[nodiscard]] std::string ToString() const;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

inline std::unexpected<Error> Fail(Error error) { return std::unexpected<Error>(std::move(error)); }
inline std::unexpected<Error> Fail(ErrorKind kind, std::string message) {
  return std::unexpected<Error>(Error(kind, std::move(message)));
}

#define STACKREEL_CONCAT_INNER(a, b) a##b
#define STACKREEL_CONCAT(a, b) STACKREEL_CONCAT_INNER(a, b)

// TRY(expr): returns expr's error from this function, if it has one.
#define TRY(expr)                                                                  \
  do {                                                                             \
    if (auto try_result = (expr); !try_result) {                                   \
      return ::std::unexpected<::stackreel::Error>(std::move(try_result.error())); \
    }                                                                              \
  } while (false)

// TRY_ASSIGN(lhs, expr): lhs = the value of expr, or returns expr's error.
#define TRY_ASSIGN(lhs, expr) TRY_ASSIGN_INNER(STACKREEL_CONCAT(try_result_, __LINE__), lhs, expr)
#define TRY_ASSIGN_INNER(result, lhs, expr)                                             \
  auto result = (expr);                                                                 \
  if (!result) return ::std::unexpected<::stackreel::Error>(std::move(result.error())); \
  lhs = std::move(*result)

}  // namespace stackreel
