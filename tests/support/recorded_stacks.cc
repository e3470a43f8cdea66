#include "support/recorded_stacks.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "base/memory_io.h"
#include "os/file.h"
#include "os/proc.h"
#include "perfdata/reader.h"
#include "perfdata/sorter.h"
#include "session/session.h"

namespace stackreel {
namespace {

class Loader : public perfdata::TimedSink {
 public:
  Loader(const perfdata::Reader& reader, Recording& recording, size_t limit)
      : reader_(reader),
        recording_(recording),
        limit_(limit),
        session_(reader.features(), reader.endian(), counters_) {}

  Status OnTimedRecord(const perfdata::TimedRecord& record) override {
    if (record.raw.record_type() == perfdata::RecordType::kSample) {
      if (recording_.stacks.size() < limit_) AddSample(record);
      return {};
    }
    const perfdata::Attr* attr =
        record.event ? &reader_.events().events()[*record.event].attr : nullptr;
    session_.Apply(record, {reader_.endian(), attr});
    return {};
  }

 private:
  void AddSample(const perfdata::TimedRecord& record) {
    if (!record.event) return;
    perfdata::Sample sample;
    const perfdata::Attr& attr = reader_.events().events()[*record.event].attr;
    if (!perfdata::DecodeSample(record.raw, attr, reader_.endian(), sample)) return;
    const uint64_t abi = sample.regs_user.abi & 3;
    if (abi == 0 || sample.stack_user.empty()) return;
    RecordedStack stack;
    stack.pid = sample.pid;
    stack.tid = sample.tid;
    stack.time = sample.time;
    stack.offset = record.raw.file_offset;
    stack.block = record.raw.block;
    const session::Process& process = session_.ProcessOf(sample.pid);
    stack.maps = MapsOf(process.maps, abi == 1);
    unwind::UnwindInput& input = stack.input;
    input.arch = unwind::ArchOf(session_.machine(), abi);
    input.code_mask = session_.MaskOf(process, &sample).insn;
    for (unsigned reg = 0; reg < unwind::Registers::kMax; ++reg) {
      if (const auto value = sample.regs_user.Get(reg)) input.registers.Set(reg, *value);
    }
    const unsigned sp = unwind::StackPointerOf(input.arch);
    input.stack = unwind::StackView(Avma(input.registers.values[sp]), sample.stack_user);
    input.stack_was_cut = sample.stack_user.size() >= sample.stack_user_size;
    input.maps = &stack.maps->maps;
    recording_.stacks.push_back(std::move(stack));
  }

  std::shared_ptr<const RecordedMaps> MapsOf(const session::AddressSpacePtr& space, bool is_32bit) {
    auto [it, fresh] = maps_.try_emplace(space->version());
    if (!fresh) return it->second.first;
    auto made = std::make_shared<RecordedMaps>();
    made->maps.version = space->version();
    for (const auto& entry : space->entries()) {
      RecordedMapping mapping{entry.start, entry.end, entry.value.offset.value,
                              entry.value.executable, FileOf(entry.value.module, is_32bit)};
      unwind::UnwindMapping unwind_mapping;
      unwind_mapping.start = entry.start;
      unwind_mapping.end = entry.end;
      unwind_mapping.executable = entry.value.executable;
      // A file's data segment may begin in the middle of a page that another segment ends in, so
      // that its offset says two addresses: only its code is taken.
      if (mapping.file != nullptr && mapping.executable) {
        const auto svma = mapping.file->image->SvmaOf(entry.value.offset);
        unwind_mapping.bias = entry.start - svma.value_or(Svma(mapping.offset)).value;
        unwind_mapping.module = mapping.file->module.get();
      }
      made->maps.mappings.push_back(unwind_mapping);
      made->mappings.push_back(mapping);
    }
    it->second = {made, space};  // keeping the space keeps its version's number from reuse
    return made;
  }

  // The vDSO of 32-bit tasks, and of other machines, is not to be had from this process.
  const RecordedFile* FileOf(session::ModuleId id, bool is_32bit) {
    if (id == session::kNoModule) return nullptr;
    const session::Module& module = session_.modules()[id];
    const bool is_vdso = module.key.kind == session::ModuleKind::kVdso;
    if (module.key.kind != session::ModuleKind::kFile && !is_vdso) return nullptr;
    if (is_vdso && (is_32bit || symfs_ != nullptr)) return nullptr;
    auto [it, fresh] = recording_.files.try_emplace(module.path());
    RecordedFile& file = it->second;
    if (fresh) {
      file.path = module.path();
      if (is_vdso) {
        file.bytes = std::make_shared<MemoryImage>(os::ReadOwnVdso(), "[vdso]");
      } else if (auto mapped =
                     os::MapFile(std::string(symfs_ == nullptr ? "" : symfs_) + file.path)) {
        file.bytes = *std::move(mapped);
      }
      if (file.bytes) {
        if (auto image = elf::Image::Parse(file.bytes->bytes())) {
          file.image = *std::move(image);
          file.module = unwind::UnwindModule::Make(&*file.image, nullptr);
        }
      }
    }
    return file.module ? &file : nullptr;
  }

  const perfdata::Reader& reader_;
  Recording& recording_;
  size_t limit_;
  Counters counters_;
  session::Session session_;
  const char* symfs_ = std::getenv("STACKREEL_BENCH_SYMFS");  // where another machine's files are
  std::map<uint64_t, std::pair<std::shared_ptr<const RecordedMaps>, session::AddressSpacePtr>>
      maps_;
};

}  // namespace

Result<std::unique_ptr<Recording>> LoadRecording(const std::string& path, size_t limit) {
  TRY_ASSIGN(const std::unique_ptr<FileSource> source, os::OpenSource(path));
  TRY_ASSIGN(const std::unique_ptr<perfdata::Reader> reader, perfdata::Reader::Open(*source));
  auto recording = std::make_unique<Recording>();
  Loader loader(*reader, *recording, limit);
  Counters counters;
  perfdata::RoundSorter sorter(*reader, loader, counters);
  TRY_ASSIGN(const perfdata::ReadEnd end, reader->ReadAll(sorter));
  TRY(sorter.Finish());
  if (end.damage && recording->stacks.empty()) return Fail(*end.damage);
  return recording;
}

}  // namespace stackreel
