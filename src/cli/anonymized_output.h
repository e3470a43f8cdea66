// The output of an anonymisation: verified before anybody sees it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "anonymize/anonymize.h"
#include "anonymize/verify.h"
#include "base/error.h"
#include "base/io.h"
#include "os/file.h"

namespace stackreel::cli {

// A file that is put in place when it is known to be clean. What goes to a pipe, a device or
// standard output, where nothing can be taken back, is kept in a file without a name until then.
class AnonymizedOutput : public ByteSink {
 public:
  // `kept`: it will be read again before it goes out.
  static Result<std::unique_ptr<AnonymizedOutput>> Create(const std::string& path, bool kept);
  Status Write(ByteView bytes) override;
  Status WriteAt(uint64_t offset, ByteView bytes) override;
  // What was written, to be read while this lives and nothing more is written.
  [[nodiscard]] std::unique_ptr<FileSource> Source();
  Status Commit();

 private:
  std::string name_;
  std::unique_ptr<os::OutputFile> output_;
  std::unique_ptr<os::OutputFile> spool_;  // null: output_ can be read back
  uint64_t size_ = 0;
};

// Says what was found, a line for each field and way to be wrong, 20 at most, with what, where (at
// which offset of the file and in the record) and how often; or that nothing was. `asked`: the
// level that was asked for, if one was; where it is not OUT's, that is said first.
std::string VerdictText(const anonymize::Verdict& verdict, const std::string& name,
                        std::optional<anonymize::Level> asked);

}  // namespace stackreel::cli
