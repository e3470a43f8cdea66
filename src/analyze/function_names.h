// Names of functions that a recording carries with it, for readers that have not the files of its
// modules: as when modules have pseudonyms.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "anonymize/anonymize.h"
#include "perfdata/features.h"
#include "symbolize/symbolizer.h"

namespace stackreel::analyze {

// Passes all records on as they are, and makes the feature STACKREEL_FUNCTIONS of the functions
// that occur in the samples' chains and branches: of files, the kernel and its modules; not of code
// made at run time. All that is referred to must outlive the step; `files` gives the binaries of
// the recording.
std::unique_ptr<anonymize::RecordStep> MakeFunctionNamesStep(const anonymize::RecordingHead& head,
                                                             perfdata::TimedSink& next,
                                                             symbolize::ModuleFileProvider& files);

// Gives the files of another provider and, for modules of which that has none, the names that the
// recording carries. Both must outlive it; the features may grow until the first module is asked
// for.
class RecordedFunctionNames : public symbolize::ModuleFileProvider {
 public:
  RecordedFunctionNames(symbolize::ModuleFileProvider& files, const perfdata::Features& features,
                        Endian endian)
      : files_(files), features_(features), endian_(endian) {}
  symbolize::ModuleFiles FilesOf(const session::Module& module) override;

 private:
  symbolize::ModuleFileProvider& files_;
  const perfdata::Features& features_;
  Endian endian_;
};

}  // namespace stackreel::analyze
