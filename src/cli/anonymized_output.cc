#include "cli/anonymized_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/plural.h"
#include "cli/written_source.h"

namespace stackreel::cli {
namespace {

// Whether what is written there is not seen before it is put in place.
bool IsPutInPlace(const std::string& path) {
  if (path == "-") return false;
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
}

std::string_view WhatIsWrong(anonymize::FindingKind kind) {
  using anonymize::FindingKind;
  switch (kind) {
    case FindingKind::kAddressOutside:
      return "address outside mappings and pseudonyms";
    case FindingKind::kOriginalValue:
      return "original value";
    case FindingKind::kPayload:
      return "payload";
    case FindingKind::kEventConfig:
      return "event with an address or payload";
    case FindingKind::kText:
      return "hidden text";
    case FindingKind::kDifference:
      return "not as in the original";
    case FindingKind::kKey:
      return "not determined by the key";
    case FindingKind::kPerf:
      return "other symbols in perf";
  }
  return "";
}

std::string GroupText(const anonymize::FindingGroup& group) {
  const anonymize::Finding& finding = group.first;
  const std::string field = finding.field.empty() ? "" : " " + finding.field;
  std::string text = fmt::format("({}) {}: {}{} at {:#x}+{:#x}: {}",
                                 static_cast<char>(finding.kind), WhatIsWrong(finding.kind),
                                 finding.record.empty() ? "between records" : finding.record, field,
                                 finding.file_offset, finding.offset, finding.value);
  if (group.count > 1) text += fmt::format("; {} such", group.count);
  return text + "\n";
}

// That it was checked for something else than who asks may think.
std::string MarkText(const anonymize::Verdict& verdict, const std::string& name,
                     std::optional<anonymize::Level> asked) {
  const std::string_view level = anonymize::LevelName(verdict.level);
  if (!verdict.mark) {
    return asked ? ""
                 : fmt::format("{}: anonymize left no mark in it: checked for --{}\n", name, level);
  }
  const std::string_view made = anonymize::LevelName(*verdict.mark);
  if (asked && *asked < *verdict.mark) {
    return fmt::format("{}: made with --{}: checked for that, which is more than --{}\n", name,
                       made, anonymize::LevelName(*asked));
  }
  if (asked && *asked > *verdict.mark) {
    return fmt::format("{}: made with --{}: checked for --{} nevertheless\n", name, made, level);
  }
  return "";
}

}  // namespace

Result<std::unique_ptr<AnonymizedOutput>> AnonymizedOutput::Create(const std::string& path,
                                                                   bool kept) {
  auto output = std::make_unique<AnonymizedOutput>();
  output->name_ = path == "-" ? "standard output" : path;
  TRY_ASSIGN(output->output_, os::OutputFile::Create(path));
  if (kept && !IsPutInPlace(path)) {
    TRY_ASSIGN(output->spool_, os::OutputFile::CreateUnnamed());
  }
  return output;
}

Status AnonymizedOutput::Write(ByteView bytes) {
  size_ += bytes.size();
  return (spool_ ? spool_ : output_)->Write(bytes);
}

Status AnonymizedOutput::WriteAt(uint64_t offset, ByteView bytes) {
  return (spool_ ? spool_ : output_)->WriteAt(offset, bytes);
}

std::unique_ptr<FileSource> AnonymizedOutput::Source() {
  return std::make_unique<WrittenSource>(*(spool_ ? spool_ : output_), size_, name_);
}

Status AnonymizedOutput::Commit() {
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<uint8_t> piece(spool_ ? kPiece : 0);
  for (uint64_t at = 0; spool_ && at < size_;) {
    TRY_ASSIGN(const size_t n, spool_->ReadAt(at, piece));
    if (n == 0) return Fail(ErrorKind::kIo, "a temporary file was cut short");
    TRY(output_->Write(ByteView(piece).first(n)));
    at += n;
  }
  return output_->Commit();
}

std::string VerdictText(const anonymize::Verdict& verdict, const std::string& name,
                        std::optional<anonymize::Level> asked) {
  constexpr size_t kMostGroups = 20;
  std::string text = MarkText(verdict, name, asked);
  if (verdict.clean()) {
    return text + fmt::format("{}: clean at --{}: {}, {}, {} looked at\n", name,
                              anonymize::LevelName(verdict.level),
                              Plural(verdict.samples, "sample"),
                              Plural(verdict.mappings, "mapping"), Plural(verdict.bytes, "byte"));
  }
  const size_t shown = std::min(verdict.groups.size(), kMostGroups);
  uint64_t more = 0;
  for (size_t i = 0; i < verdict.groups.size(); ++i) {
    const anonymize::FindingGroup& group = verdict.groups[i];
    if (i < shown) {
      text += GroupText(group);
    } else {
      more += group.count;
    }
  }
  if (more != 0) {
    text += fmt::format("and {} more in {} other fields\n", more, verdict.groups.size() - shown);
  }
  return text + fmt::format("{}: not clean at --{}: {} found\n", name,
                            anonymize::LevelName(verdict.level), verdict.found);
}

}  // namespace stackreel::cli
