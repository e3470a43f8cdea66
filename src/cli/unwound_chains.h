// The call chains that stacks were unwound to, kept until the output is verified.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "anonymize/anonymize.h"
#include "anonymize/verify.h"
#include "base/error.h"
#include "os/file.h"
#include "perfdata/attr.h"
#include "perfdata/sorter.h"

namespace stackreel::cli {

// Stands behind what unwinds (analyze::MakeChainStep): writes the chain of each sample that had a
// dumped stack to a temporary file, and passes all records on. Reads them back afterwards.
class UnwoundChainFile : public perfdata::TimedSink, public anonymize::UnwoundChains {
 public:
  // `next` must outlive it.
  static Result<std::unique_ptr<UnwoundChainFile>> Create(Endian endian, perfdata::TimedSink& next);
  // The events as recorded, and as the records have them that come. Before all records.
  void SetEvents(const std::vector<perfdata::Event>& recorded,
                 std::vector<perfdata::Event> unwound);

  Status OnTimedRecord(const perfdata::TimedRecord& record) override;
  // After all records.
  Result<std::optional<anonymize::UnwoundChain>> Next() override;

 private:
  UnwoundChainFile(Endian endian, perfdata::TimedSink& next) : endian_(endian), next_(next) {}
  Status Write(const perfdata::TimedRecord& record);
  Result<ByteView> Read(size_t size);

  Endian endian_;
  perfdata::TimedSink& next_;
  std::unique_ptr<os::OutputFile> file_;
  std::vector<bool> had_stack_;  // by event
  std::vector<perfdata::Event> unwound_;
  perfdata::Sample sample_;
  std::vector<uint8_t> written_;  // not in the file yet
  uint64_t size_ = 0;             // of the file
  std::vector<uint8_t> window_;   // read back, [at_, end_)
  uint64_t read_ = 0;
  size_t at_ = 0, end_ = 0;
};

// The file, made if there are stacks to be unwound.
class UnwoundToVerify {
 public:
  // Puts it between what `make` makes and `next`.
  std::unique_ptr<anonymize::RecordStep> StandBehind(
      const anonymize::RecordingHead& head, perfdata::TimedSink& next,
      const std::function<std::unique_ptr<anonymize::RecordStep>(perfdata::TimedSink&)>& make);
  // Null if nothing was to be unwound.
  Result<anonymize::UnwoundChains*> Chains();

 private:
  Result<std::unique_ptr<UnwoundChainFile>> file_ = nullptr;
};

}  // namespace stackreel::cli
