// A recording that is analysed: the options that report, script and flamegraph share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "cli/command.h"
#include "cli/file_search.h"

namespace stackreel::cli {

// Who has --comm, --dso and --symbol.
enum class NameFilters : uint8_t {
  kSamples,  // AnalysisInput: they choose samples, while reading
  kCommand,  // the command itself
};

class AnalysisInput {
 public:
  explicit AnalysisInput(NameFilters name_filters = NameFilters::kSamples);
  ~AnalysisInput();
  AnalysisInput(const AnalysisInput&) = delete;
  AnalysisInput& operator=(const AnalysisInput&) = delete;

  // The recording, the sample filters, and where symbols are looked for.
  void AddOptions(CLI::App& app);
  // Opens the recording; filters and limits given as options are put into `options`.
  Status Open(const GlobalOptions& global, analyze::AnalysisOptions options);
  [[nodiscard]] analyze::Analysis& analysis();
  [[nodiscard]] const perfdata::Reader& reader() const;

  // What is to be shown: the recording; with --samples that beside a trace, which is Open()ed then.
  // Without a name, whichever there is (TraceOr).
  Result<std::string> Choose(const CLI::App& app);
  [[nodiscard]] bool wants_samples_of_trace() const { return samples_; }
  // Another recording than the one given as an option, for Open().
  void set_input(std::string input) { input_ = std::move(input); }
  // Those of --cpu; empty: all.
  [[nodiscard]] Result<std::vector<uint32_t>> Cpus() const;
  [[nodiscard]] const std::string& input() const { return input_; }
  [[nodiscard]] const std::vector<uint32_t>& tids() const { return tids_; }

  // Reads it all, with progress on a terminal.
  Result<analyze::AnalysisResult> Run(analyze::AnalysisSink& sink);
  // The same, into a profile.
  Result<profile::Profile> MakeProfile(const analyze::ProfileOptions& options);
  // Says on stderr what was lost or damaged; gives the exit code.
  int Report(const analyze::AnalysisResult& result, const GlobalOptions& global) const;

 private:
  struct Opened;
  [[nodiscard]] Status ParseFilter(profile::Filter& filter) const;

  NameFilters name_filters_;
  std::string input_ = "perf.data";
  std::vector<std::string> comms_, dsos_, symbols_;
  std::vector<uint32_t> pids_, tids_;
  std::string cpus_, time_;
  size_t max_stack_ = 1024;
  bool no_inline_ = false, samples_ = false;
  FileSearch search_;
  std::unique_ptr<Opened> opened_;
};

}  // namespace stackreel::cli
