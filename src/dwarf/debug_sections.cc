#include "dwarf/debug_sections.h"

#include <elf.h>

#include <algorithm>
#include <array>

#include "base/byte_reader.h"
#include "base/page_advice.h"

namespace stackreel::dwarf {

ByteView DebugSectionFile::Load(std::string_view name) const {
  const elf::Section* section = image_.FindSection(name);
  if (section == nullptr && name.starts_with(".debug_")) {
    section = image_.FindSection(".z" + std::string(name.substr(1)));
  }
  if (section == nullptr || section->type == SHT_NOBITS) return {};
  // Of one that is not compressed, mostly little is read.
  if ((section->flags & SHF_COMPRESSED) != 0) WillRead(image_.RawBytes(*section));
  if (layout_) {
    auto relocated = elf::ReadRelocated(image_, *section, *layout_, relocations_not_done_);
    if (relocated) return loaded_.emplace_back(std::move(*relocated)).view();
    ++bad_sections_;
    return {};
  }
  Result<elf::SectionBytes> bytes = image_.ReadSection(*section);
  if (!bytes) {
    ++bad_sections_;
    return {};
  }
  loaded_.push_back(std::move(*bytes));
  return loaded_.back().view();
}

ByteView DebugSectionFile::OnNeed(std::optional<ByteView>& section, std::string_view name) const {
  if (!section) section = kind_ == Kind::kSplit ? ByteView() : Load(name);
  return *section;
}

// .gnu_debugaltlink, as dwz writes it, or .debug_sup of DWARF 5 (section 7.3.6):
//   u16 version; u8 is_supplementary; text file name; uleb128 size; checksum (the build-id)
void DebugSectionFile::ReadSupplementaryLink() {
  if (auto link = image_.ReadDebugAltLink()) {
    supplementary_id_ = link->build_id;
    supplementary_ = {.path = link->file_name, .build_id = supplementary_id_.bytes()};
    return;
  }
  const elf::Section* section = image_.FindSection(".debug_sup");
  if (section == nullptr) return;
  ByteReader reader(image_.RawBytes(*section), image_.endian());
  const uint16_t version = reader.U16();
  const bool is_supplementary = reader.U8() != 0;
  const std::string_view path = reader.CString();
  const ByteView checksum = reader.Bytes(reader.Uleb128());
  if (!reader.ok() || version != 5 || is_supplementary) return;
  supplementary_ = {.path = path, .build_id = checksum};
}

void DebugSectionFile::ReadCodeRanges() {
  for (size_t i = 0; i < image_.sections().size(); ++i) {
    const elf::Section& section = image_.sections()[i];
    if ((section.flags & SHF_ALLOC) == 0 || (section.flags & SHF_EXECINSTR) == 0) continue;
    if (section.name.starts_with(".plt")) continue;  // what the linker makes has no DIEs
    const uint64_t start = layout_ ? layout_->AddressOf(i) : section.addr;
    // An empty one may lie where another begins.
    if (section.size == 0 || section.size > UINT64_MAX - start) continue;
    code_.push_back({start, start + section.size});
  }
  std::sort(code_.begin(), code_.end(),
            [](const AddressRange& a, const AddressRange& b) { return a.lo < b.lo; });
}

Result<std::shared_ptr<const DebugSectionFile>> DebugSectionFile::Open(FileImagePtr file,
                                                                       Kind kind) {
  const std::string name(file->name());
  Result<elf::Image> image = elf::Image::Parse(file->bytes());
  if (!image) return Fail(std::move(image.error()).At(name));
  std::shared_ptr<DebugSectionFile> out(
      new DebugSectionFile(std::move(file), *std::move(image), kind));
  if (kind == Kind::kLinked && out->image_.type() == ET_REL) out->layout_.emplace(out->image_);
  const std::string suffix = kind == Kind::kSplit ? ".dwo" : "";
  const auto load = [&](const char* section) { return out->Load(section + suffix); };
  DebugSections& sections = out->sections_;
  sections.endian = out->image_.endian();
  sections.info = load(".debug_info");
  if (sections.info.empty()) {
    return Fail(Error(out->bad_sections_ != 0 ? ErrorKind::kDamaged : ErrorKind::kNotFound,
                      "no " + std::string(".debug_info") + suffix +
                          (out->bad_sections_ != 0 ? " that can be decompressed" : ""))
                    .At(name));
  }
  sections.abbrev = load(".debug_abbrev");
  sections.str = load(".debug_str");
  sections.str_offsets = load(".debug_str_offsets");
  sections.rnglists = load(".debug_rnglists");
  if (kind != Kind::kSplit) {
    sections.addr = load(".debug_addr");
    sections.ranges = load(".debug_ranges");
    sections.aranges = load(".debug_aranges");
    out->ReadSupplementaryLink();
    out->ReadCodeRanges();
  } else {
    out->package_index_ = out->Load(".debug_cu_index");
  }
  return std::shared_ptr<const DebugSectionFile>(std::move(out));
}

bool DebugSectionFile::MayHoldCode(uint64_t svma) const {
  if (code_.empty()) return true;
  auto after = std::upper_bound(code_.begin(), code_.end(), svma,
                                [](uint64_t s, const AddressRange& r) { return s < r.lo; });
  return after != code_.begin() && svma < std::prev(after)->hi;
}

}  // namespace stackreel::dwarf
