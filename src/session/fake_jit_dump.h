// For tests: a jitdump put together record by record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/byte_writer.h"
#include "base/bytes.h"

namespace stackreel::session {

class FakeJitDump {
 public:
  explicit FakeJitDump(Endian endian = Endian::kLittle, uint64_t flags = 0) : out_(endian) {
    out_.U32(0x4a695444);
    out_.U32(1);
    out_.U32(40);
    out_.U32(62);
    out_.U32(0);
    out_.U32(1);
    out_.U64(0);
    out_.U64(flags);
  }
  // Code of `size` bytes 0xc3.
  void Load(uint64_t time, uint64_t start, uint64_t size, const std::string& name,
            uint64_t number) {
    ByteWriter body(out_.endian());
    body.U32(1);
    body.U32(1);
    body.U64(start);
    body.U64(start);
    body.U64(size);
    body.U64(number);
    body.Text(name);
    body.U8(0);
    for (uint64_t i = 0; i < size; ++i) body.U8(0xc3);
    Record(0, time, body.Take());
  }
  void Move(uint64_t time, uint64_t from, uint64_t to, uint64_t size, uint64_t number) {
    ByteWriter body(out_.endian());
    body.U32(1);
    body.U32(1);
    for (const uint64_t word : {to, from, to, size, number}) body.U64(word);
    Record(1, time, body.Take());
  }
  struct Line {
    uint64_t address;
    uint32_t line;
    std::string file;
  };
  void Lines(uint64_t time, uint64_t start, const std::vector<Line>& lines) {
    ByteWriter body(out_.endian());
    body.U64(start);
    body.U64(lines.size());
    for (const Line& line : lines) {
      body.U64(line.address);
      body.U32(line.line);
      body.U32(0);
      body.Text(line.file);
      body.U8(0);
    }
    Record(2, time, body.Take());
  }
  void Close(uint64_t time) { Record(3, time, {}); }
  void UnwindingInfo(uint64_t time, ByteView eh_frame, size_t header_size = 20) {
    ByteWriter body(out_.endian());
    body.U64(eh_frame.size() + header_size);
    body.U64(header_size);
    body.U64(eh_frame.size() + header_size);
    body.Bytes(eh_frame);
    body.Zeros(header_size);
    Record(4, time, body.Take());
  }
  void Record(uint32_t id, uint64_t time, const std::vector<uint8_t>& body) {
    out_.U32(id);
    out_.U32(static_cast<uint32_t>(16 + body.size()));
    out_.U64(time);
    out_.Bytes(body);
  }
  [[nodiscard]] std::vector<uint8_t> Take() { return out_.Take(); }

 private:
  ByteWriter out_;
};

}  // namespace stackreel::session
