#include "perfdata/rereader.h"

#include <fmt/format.h>

#include <memory>

namespace stackreel::perfdata {

Status Rereader::Read(uint64_t offset, uint32_t size, RawRecord& record) {
  const uint64_t start = offset / kStride * kStride;
  Window& window = windows_[offset / kStride % kWindows];
  if (window.start != start) {
    auto block = std::make_shared<Block>();
    block->bytes.resize(kWindow);
    TRY_ASSIGN(const size_t got, source_.ReadAt(start, block->bytes));
    block->bytes.resize(got);
    window = {start, std::move(block)};
  }
  const ByteView bytes = window.block->bytes;
  const uint64_t at = offset - start;
  if (size < 8 || at > bytes.size() || size > bytes.size() - at ||
      LoadUnaligned<uint16_t>(bytes.data() + at + 6, endian_) != size) {
    return Fail(Error(ErrorKind::kDamaged,
                      fmt::format("the record of {} bytes that was read before is not there any "
                                  "more: the file has changed",
                                  size))
                    .At(std::string(source_.name()), offset));
  }
  record = {};
  record.bytes = bytes.subspan(at, size);
  record.type = LoadUnaligned<uint32_t>(record.bytes.data(), endian_);
  record.misc = LoadUnaligned<uint16_t>(record.bytes.data() + 4, endian_);
  record.file_offset = offset;
  record.block = window.block;
  return {};
}

}  // namespace stackreel::perfdata
