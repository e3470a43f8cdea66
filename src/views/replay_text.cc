#include "views/replay_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "tracedata/loss_reason.h"
#include "views/trace_text_pieces.h"
#include "views/value_text.h"

namespace stackreel::views {

using analyze::CallStep;
using tracedata::EventKind;
using tracedata::TraceThread;

namespace {

struct ReplayFieldName {
  ReplayField field;
  std::string_view name;
  std::string_view head;
};
constexpr ReplayFieldName kFields[] = {
    {ReplayField::kTime, "time", "           TIME"},
    {ReplayField::kElapsed, "elapsed", "        ELAPSED"},
    {ReplayField::kDuration, "duration", "   DURATION"},
    {ReplayField::kPid, "pid", "    PID "},
    {ReplayField::kTid, "tid", "    TID "},
    {ReplayField::kComm, "comm", "           COMM"},
};
constexpr size_t kTimeWidth = 15, kDurationWidth = 11, kCommWidth = 15, kIdWidth = 6;

class Replay {
 public:
  Replay(analyze::TraceCalls& calls, const ReplayOptions& options, ByteSink& out)
      : calls_(calls), options_(options), out_(out), text_(out_.text()), values_(calls) {
    start_ = calls.scale().Time(calls.first_ticks());
    // Fields of a thread are the same in each of its lines.
    for (const TraceThread& thread : calls.source().tables().threads) {
      std::string& comm = comms_.emplace_back(thread.comm.substr(0, kCommWidth));
      comm.insert(0, kCommWidth - comm.size(), ' ');
      if (!options.samples.empty()) rows_by_tid_[thread.tid] = comms_.size() - 1;
    }
    if (!options.samples.empty()) depths_.resize(comms_.size());
  }
  Status Run();

 private:
  Status OnStep(const CallStep& step, analyze::MergedSteps& steps);
  void PutFields(uint64_t ticks, const CallStep* end);
  void PutIndent(uint32_t depth) { text_.append(2 * size_t{depth}, ' '); }
  void PutName(uint32_t function);
  void PutArguments(const CallStep& step);
  void PutResult(const CallStep& end);
  void PutLoss(const CallStep& step);
  void PutSamplesUntil(uint64_t time);
  void PutSample(const analyze::TimedSample& sample);

  analyze::TraceCalls& calls_;
  const ReplayOptions& options_;
  TextStream out_;
  std::string& text_;
  ValueText values_;
  uint64_t start_ = 0;
  std::vector<std::string> comms_;  // by row of the thread
  const TraceThread* thread_ = nullptr;
  size_t thread_row_ = 0;
  size_t next_sample_ = 0;
  std::vector<uint32_t> depths_;            // where each thread is, by row; if there are samples
  std::map<uint32_t, size_t> rows_by_tid_;  // the same
  std::string arguments_;
};

void Replay::PutFields(uint64_t ticks, const CallStep* end) {
  for (const ReplayField field : options_.fields) {
    switch (field) {
      case ReplayField::kTime:
        AppendSeconds(text_, calls_.scale().Time(ticks), kTimeWidth);
        break;
      case ReplayField::kElapsed:
        AppendSeconds(text_, calls_.scale().Time(ticks) - start_, kTimeWidth);
        break;
      case ReplayField::kDuration:
        if (end != nullptr) {
          AppendDuration(text_, calls_.scale().Nanoseconds(end->duration));
        } else {
          text_.append(kDurationWidth, ' ');
        }
        break;
      case ReplayField::kPid:
      case ReplayField::kTid:
        text_ += '[';
        AppendNumber(text_, field == ReplayField::kPid ? thread_->pid : thread_->tid, kIdWidth);
        text_ += ']';
        break;
      case ReplayField::kComm:
        text_ += comms_[thread_row_];
        break;
    }
    text_ += ' ';
  }
  if (!options_.fields.empty()) text_ += "| ";
}

void Replay::PutName(uint32_t function) {
  text_ += calls_.names().NameOf(function);
  if (!options_.module_names) return;
  text_ += '@';
  text_ += calls_.names().ModuleNameOf(function);
}

void Replay::PutArguments(const CallStep& step) {
  arguments_.clear();
  if (options_.values && values_.Has(step)) values_.Append(arguments_, step);
}

void Replay::PutResult(const CallStep& end) {
  if (!options_.values || !values_.Has(end)) return;
  text_ += " = ";
  values_.Append(text_, end);
  text_ += ';';
}

void Replay::PutLoss(const CallStep& step) {
  if (!options_.comments) return;
  PutFields(step.ticks, nullptr);
  PutIndent(step.depth);
  text_ += "/* ";
  if (step.lost == 0) {
    text_ += "calls";
  } else {
    AppendNumber(text_, step.lost);
    text_ += step.lost == 1 ? " call" : " calls";
  }
  text_ += " lost: ";
  text_ += tracedata::LossReasonText(step.function);
  text_ += " */\n";
}

// "/* sampled: name */", as deep as the calls that are open in its thread.
void Replay::PutSample(const analyze::TimedSample& sample) {
  const auto& tids = calls_.selection().tids;
  if (!tids.empty() && std::ranges::find(tids, sample.tid) == tids.end()) return;
  const auto row = rows_by_tid_.find(sample.tid);
  for (const ReplayField field : options_.fields) {
    switch (field) {
      case ReplayField::kTime:
        AppendSeconds(text_, sample.time, kTimeWidth);
        break;
      case ReplayField::kElapsed:
        AppendSeconds(text_, sample.time - std::min(start_, sample.time), kTimeWidth);
        break;
      case ReplayField::kDuration:
        text_.append(kDurationWidth, ' ');
        break;
      case ReplayField::kPid:
      case ReplayField::kTid:
        text_ += '[';
        AppendNumber(text_, field == ReplayField::kPid ? sample.pid : sample.tid, kIdWidth);
        text_ += ']';
        break;
      case ReplayField::kComm:
        if (row == rows_by_tid_.end()) {
          text_.append(kCommWidth, ' ');
        } else {
          text_ += comms_[row->second];
        }
        break;
    }
    text_ += ' ';
  }
  if (!options_.fields.empty()) text_ += "| ";
  PutIndent(row == rows_by_tid_.end() ? 0 : depths_[row->second]);
  text_ += "/* sampled: ";
  text_ += sample.function;
  text_ += " */\n";
}

void Replay::PutSamplesUntil(uint64_t time) {
  while (next_sample_ < options_.samples.size() && options_.samples[next_sample_].time < time) {
    PutSample(options_.samples[next_sample_++]);
  }
}

Status Replay::OnStep(const CallStep& step, analyze::MergedSteps& steps) {
  if (step.kind == EventKind::kLost) {
    PutLoss(step);
    return {};
  }
  if (step.kind == EventKind::kEntry) {
    const uint32_t function = step.function, depth = step.depth;
    const uint64_t ticks = step.ticks;
    PutArguments(step);
    CallStep end;
    bool leaf = false;
    if (options_.merge_leaves) {
      TRY_ASSIGN(leaf, steps.TakeEnd(depth, end));
    }
    PutFields(ticks, leaf ? &end : nullptr);
    PutIndent(depth);
    PutName(function);
    text_ += '(';
    text_ += arguments_;
    if (!leaf) {
      text_ += ") {\n";
      if (!depths_.empty()) depths_[thread_row_] = depth + 1;
      return {};
    }
    text_ += ')';
    if (!options_.values || !values_.Has(end)) text_ += ';';
    PutResult(end);
    if (end.kind == EventKind::kLeft && options_.comments) text_ += " /* did not return */";
    text_ += '\n';
    return {};
  }
  if (!depths_.empty()) depths_[thread_row_] = step.depth;
  if (step.unfinished) return {};
  PutFields(step.ticks, &step);
  PutIndent(step.depth);
  text_ += '}';
  PutResult(step);
  if (options_.comments) {
    text_ += " /* ";
    PutName(step.function);
    text_ += step.kind == EventKind::kLeft ? ", did not return */" : " */";
  }
  text_ += '\n';
  return {};
}

Status Replay::Run() {
  if (!options_.fields.empty()) {
    text_ += "#";
    bool first = true;
    for (const ReplayField field : options_.fields) {
      const auto* name = std::ranges::find(kFields, field, &ReplayFieldName::field);
      text_ += name->head.substr(first ? 1 : 0);
      text_ += ' ';
      first = false;
    }
    text_ += "  FUNCTION\n";
  }
  analyze::MergedSteps steps(calls_);
  CallStep step;
  while (true) {
    TRY_ASSIGN(const bool more, steps.Next(step));
    if (!more) break;
    thread_row_ = steps.thread_row();
    thread_ = &calls_.source().tables().threads[thread_row_];
    if (!options_.samples.empty()) PutSamplesUntil(calls_.scale().Time(step.ticks));
    TRY(OnStep(step, steps));
    TRY(out_.Pass());
  }
  PutSamplesUntil(UINT64_MAX);
  return out_.Flush();
}

}  // namespace

Result<std::vector<ReplayField>> ParseReplayFields(std::string_view text) {
  std::vector<ReplayField> fields;
  if (text == "none") return fields;
  while (true) {
    const std::string_view word = text.substr(0, text.find(','));
    const auto* known = std::ranges::find(kFields, word, &ReplayFieldName::name);
    if (known == std::ranges::end(kFields)) {
      return Fail(Error(ErrorKind::kUsage, fmt::format("there is no field '{}'", word))
                      .WithCure("time, elapsed, duration, pid, tid, comm; or none"));
    }
    fields.push_back(known->field);
    if (word.size() == text.size()) return fields;
    text.remove_prefix(word.size() + 1);
  }
}

Status ReplayText(analyze::TraceCalls& calls, const ReplayOptions& options, ByteSink& out) {
  return Replay(calls, options, out).Run();
}

}  // namespace stackreel::views
