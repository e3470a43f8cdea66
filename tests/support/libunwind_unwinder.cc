#include <cstring>

#include <libunwind-x86_64.h>

#include "dwarf/cfi.h"
#include "support/other_unwinders.h"
#include "unwind/x86_64/registers.h"

// Exported by libunwind-x86_64, but in none of its headers.
extern "C" int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t*,
                                                  unw_proc_info_t*, int, void*);

namespace stackreel {
namespace {

constexpr uint32_t kPtGnuEhFrame = 0x6474e550;

int FindProcInfo(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, int need_info,
                 void* arg) {
  const auto& stack = *static_cast<const RecordedStack*>(arg);
  const unwind::UnwindMapping* mapping = stack.maps->maps.Find(ip);
  // Not -UNW_EINVAL: only without information does libunwind follow frame pointers.
  if (mapping == nullptr || mapping->module == nullptr) return -UNW_ENOINFO;
  const elf::Image& image = *mapping->module->image();
  for (const elf::Segment& segment : image.segments()) {
    if (segment.type != kPtGnuEhFrame) continue;
    // .eh_frame_hdr: 4 bytes of version and encodings, .eh_frame's place, the number of entries.
    const ByteView header = image.BytesAt(Svma(segment.vaddr));
    if (header.size() < 12 || header[1] != 0x1b || header[2] != 0x03 || header[3] != 0x3b) break;
    unw_dyn_info_t di;
    std::memset(&di, 0, sizeof di);
    di.format = UNW_INFO_FORMAT_REMOTE_TABLE;
    di.start_ip = mapping->start;
    di.end_ip = mapping->end;
    di.u.rti.segbase = segment.vaddr + mapping->bias;
    di.u.rti.table_data = di.u.rti.segbase + 12;
    di.u.rti.table_len =
        LoadUnaligned<uint32_t>(header.data() + 8, Endian::kLittle) * 8 / sizeof(unw_word_t);
    return UNW_OBJ(dwarf_search_unwind_table)(space, ip, &di, info, need_info, arg);
  }
  return -UNW_ENOINFO;
}

void PutUnwindInfo(unw_addr_space_t, unw_proc_info_t*, void*) {}

int GetDynInfoListAddr(unw_addr_space_t, unw_word_t*, void*) { return -UNW_ENOINFO; }

int AccessMem(unw_addr_space_t, unw_word_t address, unw_word_t* value, int is_write, void* arg) {
  *value = is_write != 0 ? *value : 0;
  if (is_write != 0) return -UNW_EINVAL;
  const auto& stack = *static_cast<const RecordedStack*>(arg);
  return ReadRecordedMemory(stack, address, value, sizeof *value) ? 0 : -UNW_EINVAL;
}

int AccessReg(unw_addr_space_t, unw_regnum_t reg, unw_word_t* value, int is_write, void* arg) {
  using unwind::x86_64::Cpu64;
  const auto& stack = *static_cast<const RecordedStack*>(arg);
  if (is_write != 0 || reg < 0 || static_cast<unsigned>(reg) >= Cpu64::kRegisters) {
    return -UNW_EBADREG;
  }
  *value = stack.input.registers.values[Cpu64::kPerfOfDwarf[reg]];
  return 0;
}

int AccessFpreg(unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) { return -UNW_EINVAL; }
int Resume(unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; }
int GetProcName(unw_addr_space_t, unw_word_t, char*, size_t, unw_word_t*, void*) {
  return -UNW_EINVAL;
}

unw_accessors_t accessors = {
    .find_proc_info = FindProcInfo,
    .put_unwind_info = PutUnwindInfo,
    .get_dyn_info_list_addr = GetDynInfoListAddr,
    .access_mem = AccessMem,
    .access_reg = AccessReg,
    .access_fpreg = AccessFpreg,
    .resume = Resume,
    .get_proc_name = GetProcName,
};

class LibunwindUnwinder : public OtherUnwinder {
 public:
  ~LibunwindUnwinder() override {
    if (space_ != nullptr) unw_destroy_addr_space(space_);
  }
  std::vector<uint64_t> Unwind(const RecordedStack& stack) override {
    if (space_ == nullptr || version_ != stack.maps->maps.version) {
      if (space_ != nullptr) unw_destroy_addr_space(space_);
      space_ = unw_create_addr_space(&accessors, 0);
      unw_set_caching_policy(space_, UNW_CACHE_GLOBAL);
      version_ = stack.maps->maps.version;
    }
    std::vector<uint64_t> frames;
    unw_cursor_t cursor;
    void* arg = const_cast<RecordedStack*>(&stack);
    if (unw_init_remote(&cursor, space_, arg) != 0) return frames;
    do {
      unw_word_t ip = 0;
      if (unw_get_reg(&cursor, UNW_REG_IP, &ip) != 0) break;
      frames.push_back(ip);
    } while (frames.size() < kMaxOtherFrames && unw_step(&cursor) > 0);
    return frames;
  }

 private:
  unw_addr_space_t space_ = nullptr;
  uint64_t version_ = 0;
};

}  // namespace

std::unique_ptr<OtherUnwinder> MakeLibunwindUnwinder() {
  return std::make_unique<LibunwindUnwinder>();
}

}  // namespace stackreel
