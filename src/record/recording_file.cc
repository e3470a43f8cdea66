#include "record/recording_file.h"

#include <errno.h>
#include <fmt/format.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include <array>
#include <string_view>

#include "base/bytes.h"
#include "perfdata/record_size.h"

namespace stackreel::record {

namespace {

// Offsets in the header of a perf.data file.
constexpr uint64_t kDataSection = 40;  // u64 offset, u64 size

// Space on the disk of `path`, as much as is wanted or at least some; null where there is none.
std::unique_ptr<os::OutputFile> ReserveSpace(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  for (const uint64_t kilobytes : {1024, 256, 64, 16}) {
    auto file = os::OutputFile::CreateUnnamed(folder);
    if (!file) return nullptr;
    if ((*file)->Reserve(kilobytes << 10)) return std::move(*file);
  }
  return nullptr;
}

}  // namespace

Status CheckOutputPath(const std::string& path, bool switching) {
  struct stat info = {};
  if (path == "-") return {};
  const bool is_there = stat(path.c_str(), &info) == 0;
  // What gets a longer name must not fail to when everything is recorded.
  constexpr size_t kOld = std::string_view(".old").size();
  constexpr size_t kSwitched = std::string_view(".2026112912301542-99").size();
  const bool moves = is_there && S_ISREG(info.st_mode) && info.st_size != 0;
  const size_t longer = switching ? kSwitched : moves ? kOld : 0;
  const std::string target = os::FollowLinks(path);
  const size_t length = target.size() - (target.rfind('/') + 1);
  if (length + longer > NAME_MAX) {
    return Fail(Error(ErrorKind::kUsage,
                      fmt::format("cannot record into {}: its name has {} bytes, {} are the most{}",
                                  path, length, NAME_MAX - longer,
                                  switching ? " where a time is put behind it"
                                  : moves   ? " where the old recording becomes NAME.old"
                                            : ""))
                    .WithCure("-o with a shorter name"));
  }
  if (!is_there) return {};
  if (S_ISDIR(info.st_mode)) {
    return Fail(
        Error(ErrorKind::kUsage, fmt::format("cannot record into {}: it is a directory", path))
            .WithCure(fmt::format("-o {}{}perf.data", path, path.ends_with('/') ? "" : "/")));
  }
  if (switching && !S_ISREG(info.st_mode)) {
    return Fail(
        Error(ErrorKind::kUsage,
              fmt::format("cannot switch from file to file in {}: it is no regular file", path))
            .WithCure("leave out --switch-output, or name a file with -o"));
  }
  return {};
}

Status RecordingFile::CountingSink::Write(ByteView bytes) {
  Status status = file_.Write(bytes);
  if (status) {
    size += bytes.size();
    samples = samples_handed;
  } else {
    (void)file_.Truncate(size);  // a pipe keeps what it has
  }
  return status;
}

Result<std::unique_ptr<RecordingFile>> RecordingFile::Create(
    const std::string& path, int compression_level, const std::vector<perfdata::Event>& events,
    const FeatureBytes& early) {
  std::unique_ptr<RecordingFile> out(new RecordingFile);
  out->path_ = path;
  struct stat info = {};
  const bool is_there = path != "-" && stat(path.c_str(), &info) == 0;
  out->is_pipe_ = path == "-" || (is_there && !S_ISREG(info.st_mode));
  // An empty file was made for this, with the rights that somebody wanted.
  out->published_ = out->is_pipe_ || (is_there && info.st_size == 0);
  TRY_ASSIGN(out->file_, out->published_ ? os::OutputFile::CreateInPlace(path)
                                         : os::OutputFile::CreateBeside(path));
  out->sink_ = std::make_unique<CountingSink>(*out->file_);
  perfdata::WriterOptions options;
  options.container = out->is_pipe() ? perfdata::Container::kPipe : perfdata::Container::kFile;
  options.compression_level = compression_level;
  TRY_ASSIGN(out->writer_, perfdata::Writer::Create(*out->sink_, options, events));
  if (out->is_pipe()) {
    TRY(out->writer_->WriteEarlyFeatures(early));
  } else {
    for (const auto& [feature, bytes] : early) TRY(out->writer_->WriteFeature(feature, bytes));
    TRY(out->writer_->Flush());
  }
  out->whole_ = out->sink_->size;
  if (!out->is_pipe()) out->reserve_ = ReserveSpace(path);
  return out;
}

// Never moves what is not a recording: a folder, or a device such as /dev/null.
Status RecordingFile::Publish() {
  if (published_) return {};
  struct stat info = {};
  if (stat(path_.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size != 0 &&
      rename(path_.c_str(), (path_ + ".old").c_str()) != 0) {
    return Fail(os::ErrnoError(errno, "cannot move the old recording away:", path_));
  }
  TRY(file_->Commit());
  published_ = true;
  return {};
}

Status RecordingFile::Write(ByteView record) {
  if (failed_) return Checked({});
  const bool is_sample = record.size() >= perfdata::kRecordHeaderSize &&
                         LoadUnaligned<uint32_t>(record.data(), kNativeEndian) ==
                             static_cast<uint32_t>(perfdata::RecordType::kSample);
  if (is_sample) ++sink_->samples_handed;
  return Checked(writer_->WriteEncoded(record));
}

Status RecordingFile::WriteRecord(const perfdata::Record& record) {
  return Checked(writer_->WriteRecord(record));
}

Status RecordingFile::WriteFeature(perfdata::Feature feature, ByteView bytes) {
  const auto written = writer_->WriteFeature(static_cast<uint32_t>(feature), bytes);
  return Checked(written ? Status() : Fail(written.error()));
}

Status RecordingFile::EndRound() {
  perfdata::Record round;
  round.type = static_cast<uint32_t>(perfdata::RecordType::kFinishedRound);
  round.body = perfdata::FinishedRound();
  return WriteRecord(round);
}

Status RecordingFile::Finish(const FeatureBytes& features) {
  TRY(Checked(writer_->EndRecords()));
  TRY(Checked(writer_->Flush()));
  TRY(Checked(writer_->Finish(features)));
  return file_->Commit();
}

Status RecordingFile::Checked(Status status) {
  if (failed_) return Fail(ErrorKind::kIo, "writing had failed before");
  if (status) {
    whole_ = sink_->size;
  } else {
    failed_ = true;
  }
  return status;
}

void RecordingFile::Salvage(const FeatureBytes& features) {
  if (is_pipe()) return;
  reserve_.reset();
  // What failed to be written still waits in the writer.
  (void)writer_->Flush();
  whole_ = sink_->size;
  if (!writer_->Finish(features)) CutBack();
}

// The features need space that there is none of; the data section's size has its place already.
void RecordingFile::CutBack() {
  if (is_pipe() || !file_->Truncate(whole_)) return;
  sink_->size = whole_;
  std::array<uint8_t, 16> section = {};
  const auto n = file_->ReadAt(kDataSection, section);
  if (!n || *n != section.size()) return;
  const auto offset = LoadUnaligned<uint64_t>(section.data(), kNativeEndian);
  if (offset > whole_) return;
  StoreUnaligned<uint64_t>(section.data() + 8, whole_ - offset, kNativeEndian);
  (void)file_->WriteAt(kDataSection, section);
}

}  // namespace stackreel::record
