// stackreel convert: a trace in another format.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/print.h"
#include "cli/trace_commands.h"
#include "cli/trace_input.h"
#include "os/file.h"
#include "os/unfinished_output.h"
#include "tracedata/trace_copy.h"
#include "tracedata/trace_writer.h"
#include "tracedata/uftrace_writer.h"

namespace stackreel::cli {
namespace {

constexpr int kLevel = 3;  // zstd's

// Makes files in a directory.
class Files : public tracedata::FolderWriter {
 public:
  explicit Files(std::string folder) : folder_(std::move(folder)) {}
  Result<std::unique_ptr<ByteSink>> Create(const std::string& name) override {
    return os::OutputFile::CreateInPlace(folder_ + "/" + name);
  }

 private:
  std::string folder_;
};

class ConvertCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "convert"; }
  [[nodiscard]] const char* summary() const override {
    return "Write a trace in uftrace's format, or one of uftrace in ours";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"stackreel convert --to=uftrace -o uftrace.data      # for uftrace replay, tui, …",
            "stackreel convert -i uftrace.data --to=stackreel -o stackreel.trace"};
  }
  void AddOptions(CLI::App& app) override {
    input_.AddInput(app);
    app.add_option("--to", format_, "The format to write")
        ->required()
        ->check(CLI::IsMember({"uftrace", "stackreel"}));
    app.add_option("-o,--output", output_,
                   "The directory to make; uftrace.data or stackreel.trace by default")
        ->type_name("DIR");
  }
  Result<int> Run(const GlobalOptions& global) override;

 private:
  Result<tracedata::CallLosses> Write(const std::string& folder);

  TraceInput input_;
  std::string format_, output_;
};

Result<tracedata::CallLosses> ConvertCommand::Write(const std::string& folder) {
  tracedata::TraceSource& source = input_.calls().source();
  Files files(folder);
  if (format_ == "uftrace") return tracedata::WriteUftraceData(source, files);
  TRY_ASSIGN(const std::unique_ptr<ByteSink> calls, files.Create(tracedata::kCallsFile));
  TRY_ASSIGN(const std::unique_ptr<ByteSink> facts, files.Create(tracedata::kFactsFile));
  TRY_ASSIGN(tracedata::TraceWriter writer, tracedata::TraceWriter::Begin(*calls, *facts, kLevel));
  return tracedata::CopyTrace(source, writer);
}

Result<int> ConvertCommand::Run(const GlobalOptions& global) {
  std::string output = output_;
  if (output.empty()) output = format_ == "uftrace" ? "uftrace.data" : kDefaultTrace;
  TRY(RefuseStandardOutput(output));
  while (output.size() > 1 && output.ends_with('/')) output.pop_back();
  std::error_code error;
  const bool is_empty_folder =
      std::filesystem::is_directory(output, error) && std::filesystem::is_empty(output, error);
  if (std::filesystem::exists(output, error) && !is_empty_folder) {
    return Fail(Error(ErrorKind::kUsage, fmt::format("{} is there already", output))
                    .WithCure("name another directory with -o, or remove it first"));
  }
  TRY(input_.Open());
  // Whatever else is there is not ours to remove.
  const std::string unfinished = fmt::format("{}.unfinished-{}", output, getpid());
  if (!std::filesystem::create_directory(unfinished, error)) {
    const std::string why = error ? error.message() : "it is there already";
    return Fail(ErrorKind::kIo, fmt::format("cannot make directory {}: {}", unfinished, why));
  }
  const os::UnfinishedOutput removed_at_signals(unfinished);
  // As a trace: the program's data are in it.
  std::filesystem::permissions(unfinished, std::filesystem::perms::owner_all, error);
  const auto losses = Write(unfinished);
  Status status = losses ? Status() : Fail(losses.error());
  if (status) {
    std::filesystem::rename(unfinished, output, error);
    if (error) {
      status = Fail(ErrorKind::kIo,
                    fmt::format("cannot rename {} to {}: {}", unfinished, output, error.message()));
    }
  }
  if (!status) {
    std::filesystem::remove_all(unfinished, error);
    return Fail(std::move(status.error()));
  }
  if (!global.quiet) Print(stderr, "stackreel: wrote {}\n", output);
  return input_.Report(global, *losses);
}

}  // namespace

std::unique_ptr<Command> MakeConvertCommand() { return std::make_unique<ConvertCommand>(); }

}  // namespace stackreel::cli
