// What is said over the control socket of a running trace: one request, one answer, each one
// packet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "tracedata/filter_option.h"

namespace stackreel::tracedata {

inline constexpr uint16_t kControlVersion = 2;
inline constexpr size_t kMaxControlMessage = size_t{128} << 10;

struct ControlPattern {
  bool patch = true;  // else to unpatch
  std::string text;
  friend bool operator==(const ControlPattern&, const ControlPattern&) = default;
};

struct ControlRequest {
  enum class Kind : uint8_t {
    kChange = 1,  // patch and unpatch what the patterns name
    kStatus = 2,
    kDetach = 3,  // end the trace
    // Put these filters in force instead of those that are, which stay if these only switch
    // tracing.
    kFilter = 4,
  };
  Kind kind = Kind::kStatus;
  std::vector<ControlPattern> patterns = {};
  std::vector<FilterOption> filters = {};
  friend bool operator==(const ControlRequest&, const ControlRequest&) = default;
};

// A number with a name, in a group of such: "refused" / "too short" / 12.
struct ControlCount {
  std::string group, name;
  uint64_t value = 0;
  friend bool operator==(const ControlCount&, const ControlCount&) = default;
};

struct ControlAnswer {
  std::optional<Error> error;  // kind, message and cure
  std::vector<ControlCount> counts;

  void Add(std::string group, std::string name, uint64_t value) {
    counts.push_back({std::move(group), std::move(name), value});
  }
  // 0 if there is none.
  [[nodiscard]] uint64_t Find(std::string_view group, std::string_view name) const;
};

// Little-endian: u32 magic "SRCM", u16 version, u16 what it is; then the members in their order,
// lists and texts with a u32 of how many before them.
[[nodiscard]] std::vector<uint8_t> Encode(const ControlRequest& request);
[[nodiscard]] std::vector<uint8_t> Encode(const ControlAnswer& answer);
// kDamaged for anything else, bytes behind the last member included. kUnsupported: another version.
[[nodiscard]] Result<ControlRequest> DecodeRequest(ByteView bytes);
[[nodiscard]] Result<ControlAnswer> DecodeAnswer(ByteView bytes);

}  // namespace stackreel::tracedata
