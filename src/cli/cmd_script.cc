// stackreel script: samples as text or JSON lines.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "analyze/analysis.h"
#include "cli/analysis_input.h"
#include "cli/command.h"
#include "cli/recording_input.h"
#include "cli/text_output.h"
#include "views/record_text.h"
#include "views/script_text.h"
#include "views/text_report.h"

namespace stackreel::cli {
namespace {

// Gathers output and writes it in large pieces.
class ScriptOutput : public analyze::AnalysisSink {
 public:
  struct Wanted {
    bool json = false;
    const perfdata::Reader* header = nullptr;  // whose header goes first; of a pipe it comes late
    uint32_t records = 0;                      // views::ShownRecords
    std::vector<uint32_t> cpus;                // of records; empty: all
  };
  ScriptOutput(analyze::Analysis& analysis, const views::ScriptOptions& options, Wanted wanted,
               ByteSink& sink)
      : analysis_(analysis),
        options_(options),
        formatter_(analysis, options),
        json_(wanted.json),
        wanted_(std::move(wanted)),
        sink_(sink) {
    text_.reserve(2 * kPiece);
  }

  Status OnRecord(const perfdata::Record& record, uint32_t event) override;
  Status OnSample(const analyze::AnalyzedSample& sample) override;
  std::unique_ptr<Portion> MakePortion(size_t workers) override;
  Status Prepare(const analyze::AnalyzedSample& sample, size_t worker, Portion& portion) override;
  Status OnPortion(Portion& portion) override;
  Status Flush() {
    TRY(sink_.Write(AsBytes(text_)));
    text_.clear();
    return {};
  }
  Status Finish() {
    Header();
    return Flush();
  }

 private:
  static constexpr size_t kPiece = size_t{256} << 10;

  // The text of samples that follow each other, and which of them have yet to be put in where.
  struct ScriptPortion : Portion {
    struct Later {
      size_t at = 0;
      const analyze::AnalyzedSample* sample = nullptr;
    };
    std::string text;
    std::vector<Later> later;
  };

  void Header();
  Status Format(views::ScriptFormatter& formatter, const analyze::AnalyzedSample& sample,
                std::string& text) const {
    return json_ ? formatter.AppendJson(sample, text) : formatter.AppendText(sample, text);
  }
  // The first JSON object says what it is.
  void AddSchema(std::string& text) {
    if (!json_ || wrote_schema_ || text.empty()) return;
    wrote_schema_ = true;
    text.insert(1, views::kSampleSchema);
  }

  analyze::Analysis& analysis_;
  views::ScriptOptions options_;
  views::ScriptFormatter formatter_;
  std::vector<std::unique_ptr<views::ScriptFormatter>> formatters_;  // by worker
  bool json_;
  bool wrote_schema_ = false;
  Wanted wanted_;
  ByteSink& sink_;
  std::string text_;
};

void ScriptOutput::Header() {
  const perfdata::Reader* reader = std::exchange(wanted_.header, nullptr);
  if (reader == nullptr) return;
  text_ += views::HeaderText(perfdata::DescribeFeatures(reader->features(), reader->endian()));
  text_ += "#\n";
}

Status ScriptOutput::OnRecord(const perfdata::Record& record, uint32_t event) {
  if ((views::ShownKind(record) & wanted_.records) == 0) return {};
  const bool has_cpu = record.sample_id && (record.sample_id->present & perfdata::kSampleCpu) != 0;
  if (has_cpu && !wanted_.cpus.empty() &&
      std::ranges::find(wanted_.cpus, record.sample_id->cpu) == wanted_.cpus.end()) {
    return {};
  }
  Header();
  TRY(formatter_.AppendRecord(record, event, text_));
  return text_.size() < kPiece ? Status() : Flush();
}

Status ScriptOutput::OnSample(const analyze::AnalyzedSample& sample) {
  Header();
  TRY(Format(formatter_, sample, text_));
  if (!wrote_schema_) AddSchema(text_);
  return text_.size() < kPiece ? Status() : Flush();
}

std::unique_ptr<analyze::AnalysisSink::Portion> ScriptOutput::MakePortion(size_t workers) {
  while (formatters_.size() < workers) {
    formatters_.push_back(std::make_unique<views::ScriptFormatter>(analysis_, options_));
  }
  return std::make_unique<ScriptPortion>();
}

Status ScriptOutput::Prepare(const analyze::AnalyzedSample& sample, size_t worker,
                             Portion& portion) {
  auto& own = static_cast<ScriptPortion&>(portion);
  views::ScriptFormatter& formatter = *formatters_[worker];
  TRY_ASSIGN(const bool independent, formatter.IsIndependent(sample.event));
  if (independent) return Format(formatter, sample, own.text);
  own.later.push_back({own.text.size(), &sample});
  return {};
}

Status ScriptOutput::OnPortion(Portion& portion) {
  auto& own = static_cast<ScriptPortion&>(portion);
  Header();
  if (!own.later.empty()) {
    std::string text;
    size_t at = 0;
    for (const ScriptPortion::Later& later : own.later) {
      text.append(own.text, at, later.at - at);
      at = later.at;
      TRY(Format(formatter_, *later.sample, text));
    }
    text.append(own.text, at);
    own.text = std::move(text);
    own.later.clear();
  }
  AddSchema(own.text);
  if (!text_.empty()) TRY(Flush());
  TRY(sink_.Write(AsBytes(own.text)));
  own.text.clear();
  return {};
}

struct ShowOption {
  const char* name;
  const char* what;
  views::ShownRecords records;
};
constexpr std::array<ShowOption, 7> kShowOptions = {{
    {"--show-task-events", "Show names, forks and exits of tasks too", views::kShowTasks},
    {"--show-mmap-events", "Show what is mapped too", views::kShowMmaps},
    {"--show-switch-events", "Show context switches too (record --switch-events)",
     views::kShowSwitches},
    {"--show-lost-events", "Show where records were lost too", views::kShowLost},
    {"--show-namespace-events", "Show namespaces of processes too (record --namespaces)",
     views::kShowNamespaces},
    {"--show-cgroup-events", "Show control groups too (record --all-cgroups)", views::kShowCgroups},
    {"--show-bpf-events", "Show BPF programs that come and go too", views::kShowBpf},
}};

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
    app_ = &app;
    input_.AddOptions(app);
    app.add_option("-F,--fields", fields_,
                   fmt::format("Fields to print: {}; or changes to the usual ones: +FIELD, -FIELD",
                               fmt::join(views::ScriptFieldNames(), ", ")))
        ->type_name("FIELDS");
    app.add_option("--format", format_, "How to print: text as perf does, or JSON lines")
        ->check(CLI::IsMember({"text", "json"}))
        ->capture_default_str();
    app.add_flag("--header", header_, "Show what the recording says of machine and command first");
    app.add_flag("--header-only", header_only_, "Show that and nothing else");
    for (size_t i = 0; i < kShowOptions.size(); ++i) {
      app.add_flag(kShowOptions[i].name, show_[i], kShowOptions[i].what);
    }
    app.add_flag("--ns", nanoseconds_, "Print times with nine digits");
    app.add_flag("--show-masks", masks_,
                 "arm64: print the authentication mask of each sample, and where it is from");
    app.add_option("-o,--output", output_, "Write to FILE; - is standard output")
        ->type_name("FILE")
        ->capture_default_str();
  }
  Result<int> Run(const GlobalOptions& global) override;

 private:
  Result<int> PrintHeader() const;
  [[nodiscard]] Status CheckOptions(uint32_t records) const;

  CLI::App* app_ = nullptr;
  AnalysisInput input_;
  std::string fields_;
  std::string format_ = "text";
  std::string output_ = "-";
  bool nanoseconds_ = false;
  bool masks_ = false;
  bool header_ = false, header_only_ = false;
  std::array<bool, kShowOptions.size()> show_ = {};
};

Result<int> ScriptCommand::PrintHeader() const {
  TRY_ASSIGN(const std::vector<std::string> lines, ReadHeaderLines(input_.input()));
  TRY_ASSIGN(const std::unique_ptr<os::OutputFile> out, CreateTextOutput(output_));
  TRY(out->Write(AsBytes(views::HeaderText(lines))));
  TRY(out->Commit());
  return kExitDone;
}

Status ScriptCommand::CheckOptions(uint32_t records) const {
  if (format_ != "json") return {};
  if (nanoseconds_ || !fields_.empty()) {
    return Fail(Error(ErrorKind::kUsage,
                      fmt::format("{} is of the text; JSON always has all fields, and times in ns",
                                  nanoseconds_ ? "--ns" : "-F"))
                    .WithCure("choose fields by jq: stackreel script --format=json | jq .comm"));
  }
  if (records != 0 || header_ || header_only_) {
    return Fail(Error(ErrorKind::kUsage, "JSON has one object a sample, no header or other records")
                    .WithCure("leave out --format=json"));
  }
  return {};
}

Result<int> ScriptCommand::Run(const GlobalOptions& global) {
  views::ScriptOptions options;
  options.nanoseconds = nanoseconds_;
  options.masks = masks_;
  ScriptOutput::Wanted wanted;
  for (size_t i = 0; i < show_.size(); ++i) {
    if (show_[i]) wanted.records |= kShowOptions[i].records;
  }
  TRY(CheckOptions(wanted.records));
  if (input_.wants_samples_of_trace()) TRY(input_.Choose(*app_));
  if (header_only_) return PrintHeader();
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
  analysis_options.records = wanted.records != 0;
  TRY(input_.Open(global, analysis_options));
  TRY_ASSIGN(const std::unique_ptr<os::OutputFile> out, CreateTextOutput(output_));
  wanted.json = json;
  if (header_) wanted.header = &input_.reader();
  TRY_ASSIGN(wanted.cpus, input_.Cpus());
  ScriptOutput sink(input_.analysis(), options, std::move(wanted), *out);
  TRY_ASSIGN(const analyze::AnalysisResult result, input_.Run(sink));
  TRY(sink.Finish());
  TRY(out->Commit());
  return input_.Report(result, global);
}

}  // namespace

std::unique_ptr<Command> MakeScriptCommand() { return std::make_unique<ScriptCommand>(); }

}  // namespace stackreel::cli
