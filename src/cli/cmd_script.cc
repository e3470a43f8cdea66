// stackreel script: samples as text or JSON lines.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "analyze/analysis.h"
#include "cli/analysis_input.h"
#include "cli/command.h"
#include "cli/text_output.h"
#include "views/script_text.h"

namespace stackreel::cli {
namespace {

// Gathers output and writes it in large pieces.
class ScriptOutput : public analyze::AnalysisSink {
 public:
  ScriptOutput(views::ScriptFormatter& formatter, bool json, ByteSink& sink)
      : formatter_(formatter), json_(json), sink_(sink) {
    text_.reserve(2 * kPiece);
  }

  Status OnSample(const analyze::AnalyzedSample& sample) override {
    TRY(json_ ? formatter_.AppendJson(sample, text_) : formatter_.AppendText(sample, text_));
    return text_.size() < kPiece ? Status() : Flush();
  }
  Status Flush() {
    TRY(sink_.Write(AsBytes(text_)));
    text_.clear();
    return {};
  }

 private:
  static constexpr size_t kPiece = size_t{256} << 10;

  views::ScriptFormatter& formatter_;
  bool json_;
  ByteSink& sink_;
  std::string text_;
};

class ScriptCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "script"; }
  [[nodiscard]] const char* summary() const override {
    return "Print each sample with its frames, as perf script does";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"stackreel script                                   # all of perf.data",
            "stackreel script -F comm,tid,time,event,ip,sym,dso # chosen fields",
            "stackreel script --comm node --time 12.5,13        # one program, half a second",
            "stackreel script --format=json | jq .comm          # one JSON object a sample"};
  }
  void AddOptions(CLI::App& app) override {
    input_.AddOptions(app);
    app.add_option("-F,--fields", fields_,
                   fmt::format("Fields to print: {}; or changes to the usual ones: +FIELD, -FIELD",
                               fmt::join(views::ScriptFieldNames(), ", ")))
        ->type_name("FIELDS");
    app.add_option("--format", format_, "How to print: text as perf does, or JSON lines")
        ->check(CLI::IsMember({"text", "json"}))
        ->capture_default_str();
    app.add_flag("--ns", nanoseconds_, "Print times with nine digits");
    app.add_flag("--show-masks", masks_,
                 "arm64: print the authentication mask of each sample, and where it is from");
    app.add_option("-o,--output", output_, "Write to FILE; - is standard output")
        ->type_name("FILE")
        ->capture_default_str();
  }
  Result<int> Run(const GlobalOptions& global) override;

 private:
  AnalysisInput input_;
  std::string fields_;
  std::string format_ = "text";
  std::string output_ = "-";
  bool nanoseconds_ = false;
  bool masks_ = false;
};

Result<int> ScriptCommand::Run(const GlobalOptions& global) {
  views::ScriptOptions options;
  options.nanoseconds = nanoseconds_;
  options.masks = masks_;
  if (format_ == "json" && (nanoseconds_ || !fields_.empty())) {
    return Fail(Error(ErrorKind::kUsage,
                      fmt::format("{} is of the text; JSON always has all fields, and times in ns",
                                  nanoseconds_ ? "--ns" : "-F"))
                    .WithCure("choose fields by jq: stackreel script --format=json | jq .comm"));
  }
  if (!fields_.empty()) {
    TRY_ASSIGN(options.fields, views::FieldSelection::Parse(fields_));
  }
  analyze::AnalysisOptions analysis_options;
  const uint32_t only = options.fields.only.value_or(UINT32_MAX);
  const bool json = format_ == "json";
  const bool frames = json || (only & views::kFieldIp) != 0;
  analysis_options.unwind = frames;
  analysis_options.symbolize = json || (only & (views::kFieldSym | views::kFieldSrcline)) != 0;
  analysis_options.symbols.lines =
      ((options.fields.only.value_or(0) | options.fields.add) & views::kFieldSrcline) != 0;
  TRY(input_.Open(global, analysis_options));
  TRY_ASSIGN(const std::unique_ptr<os::OutputFile> out, CreateTextOutput(output_));
  views::ScriptFormatter formatter(input_.analysis(), options);
  ScriptOutput sink(formatter, json, *out);
  TRY_ASSIGN(const analyze::AnalysisResult result, input_.Run(sink));
  TRY(sink.Flush());
  TRY(out->Commit());
  return input_.Report(result, global);
}

}  // namespace

std::unique_ptr<Command> MakeScriptCommand() { return std::make_unique<ScriptCommand>(); }

}  // namespace stackreel::cli
