#include <unordered_map>
#include <vector>

#include "analyze/analysis.h"
#include "analyze/sample_selector.h"

namespace stackreel::analyze {
namespace {

using profile::FrameId;
using profile::Profile;
using profile::StackId;
using symbolize::SymbolizedFrame;

constexpr const char* kUnknownModule = "[unknown]";

// The frame put outside a user stack that did not reach its root; empty if it did.
std::string MarkerOf(unwind::StackEnd end) {
  switch (end) {
    case unwind::StackEnd::kRoot:
    case unwind::StackEnd::kNoRegisters:
      return "";
    case unwind::StackEnd::kDumpExhausted:
      return "[truncated stack]";
    default:
      return std::string("[stack ends: ") + unwind::StackEndName(end) + "]";
  }
}

class ProfileSink : public AnalysisSink {
 public:
  ProfileSink(Analysis& analysis, const ProfileOptions& options, Profile& profile)
      : analysis_(analysis), options_(options), profile_(profile) {}

  Status OnSample(const AnalyzedSample& sample) override {
    StackId stack = profile::kEmptyStack;
    if (sample.user_end) {
      const std::string marker = MarkerOf(*sample.user_end);
      if (!marker.empty()) stack = profile_.Push(stack, MarkerFrame(marker));
    }
    for (size_t i = sample.frames.size(); i-- > 0;) {
      for (const FrameId id : FramesOf(sample.frames[i])) stack = profile_.Push(stack, id);
    }
    const perfdata::Sample& raw = *sample.sample;
    profile::ProfileSample out;
    out.stack = stack;
    out.weight = sample.period;
    out.pid = sample.pid;
    out.tid = sample.tid;
    if (raw.Has(perfdata::kSampleCpu)) out.cpu = raw.cpu;
    out.comm = CommOf(sample.comm);
    out.event = sample.event;
    if (options_.times && raw.Has(perfdata::kSampleTime)) {
      out.time = raw.time;
      profile_.AddSample(out);
    } else {
      profile_.AddMerged(out);
    }
    return {};
  }

 private:
  FrameId MarkerFrame(const std::string& text) {
    profile::Frame frame;
    frame.function = profile_.Intern(text);
    frame.marker = true;
    return profile_.AddFrame(frame);
  }

  profile::TextId CommOf(StringInterner::Id comm) {
    if (comm >= comms_.size()) comms_.resize(comm + size_t{1}, kNotAsked);
    if (comms_[comm] == kNotAsked) {
      comms_[comm] = profile_.Intern(analysis_.session().strings().Text(comm));
    }
    return comms_[comm];
  }

  // The profile's frames of one address, outermost first. Symbols are looked up once an address,
  // so that where they lie stands for the address.
  const std::vector<FrameId>& FramesOf(const AnalyzedFrame& frame) {
    if (frame.symbols.empty()) return Nowhere(frame);
    const auto [it, made] = by_symbols_.try_emplace(frame.symbols.data());
    Known& known = it->second;
    if (made) Make(frame, known);
    if (known.unresolved != nullptr) ++known.unresolved->frames;
    return known.ids;
  }

  struct Known {
    std::vector<FrameId> ids;
    Profile::Unresolved* unresolved = nullptr;
  };

  void Make(const AnalyzedFrame& frame, Known& known) {
    const session::Module& module = analysis_.session().modules()[frame.module];
    const std::string name = ShortModuleName(module);
    for (size_t i = frame.symbols.size(); i-- > 0;) {
      const SymbolizedFrame& symbol = frame.symbols[i];
      profile::Frame out;
      out.function = profile_.Intern(analysis_.symbolizer().Text(symbol.function));
      out.module = profile_.Intern(name);
      if (options_.lines) {
        out.file = profile_.Intern(analysis_.symbolizer().Text(symbol.file));
        out.line = symbol.line;
      }
      const bool innermost = i == 0;
      if (symbol.function == 0 || (options_.addresses && innermost)) {
        out.address = frame.svma.value;
      }
      out.inlined = symbol.inlined;
      out.kernel = frame.kernel;
      out.jit = module.key.kind == session::ModuleKind::kJit ||
                module.key.kind == session::ModuleKind::kJitDump;
      known.ids.push_back(profile_.AddFrame(out));
    }
    if (frame.symbols.back().function != 0) return;
    known.unresolved = &profile_.facts.unresolved_modules[name];
    known.unresolved->why = analysis_.symbolizer().WhyUnresolved(frame.module);
    if (known.unresolved->why.empty()) known.unresolved->why = "no symbol at these addresses";
  }

  // A frame in no module, or one whose symbols were not asked for.
  const std::vector<FrameId>& Nowhere(const AnalyzedFrame& frame) {
    profile::Frame out;
    const bool has_module = frame.module != session::kNoModule;
    const std::string name =
        has_module ? ShortModuleName(analysis_.session().modules()[frame.module]) : kUnknownModule;
    out.module = profile_.Intern(name);
    out.address = has_module ? frame.svma.value : frame.address.avma.value;
    out.kernel = frame.kernel;
    one_.assign(1, profile_.AddFrame(out));
    Profile::Unresolved& unresolved = profile_.facts.unresolved_modules[name];
    ++unresolved.frames;
    if (unresolved.why.empty()) {
      unresolved.why = has_module ? "symbols were not asked for" : "no mapping at these addresses";
    }
    return one_;
  }

  static constexpr profile::TextId kNotAsked = UINT32_MAX;

  Analysis& analysis_;
  ProfileOptions options_;
  Profile& profile_;
  std::vector<profile::TextId> comms_;  // by id in the session
  std::unordered_map<const SymbolizedFrame*, Known> by_symbols_;
  std::vector<FrameId> one_;
};

}  // namespace

Result<profile::Profile> MakeProfile(Analysis& analysis, const ProfileOptions& options) {
  Profile profile;
  ProfileSink sink(analysis, options, profile);
  TRY_ASSIGN(const AnalysisResult result, analysis.Run(sink));
  Profile::Facts& facts = profile.facts;
  facts.samples = result.samples;
  facts.lost = result.lost;
  facts.user_stacks = result.user_stacks;
  facts.complete_stacks = result.complete_stacks;
  facts.frames = result.frames;
  facts.unresolved_frames = result.unresolved_frames;
  for (size_t end = 0; end < result.ends.size(); ++end) {
    if (result.ends[end] == 0) continue;
    facts.stack_ends[unwind::StackEndName(static_cast<unwind::StackEnd>(end))] = result.ends[end];
  }
  for (const MaskUse& use : result.masks) {
    facts.masks[{use.mask.insn, session::MaskSourceName(use.mask.source)}] += use.samples;
  }
  // Stacks that were unwound while recording: the recorder says how all of them ended together, so
  // nothing is known of a part of them.
  static const std::map<std::string, uint64_t> kUnknown;
  const auto& recorded = result.filtered == 0 ? analysis.reader().features().stack_ends : kUnknown;
  for (const auto& [end, samples] : recorded) {
    facts.user_stacks += samples;
    facts.stack_ends[end] += samples;
    if (end == unwind::StackEndName(unwind::StackEnd::kRoot)) facts.complete_stacks += samples;
  }
  for (const perfdata::Event& event : analysis.events().events()) {
    facts.events.push_back(event.name);
  }
  const perfdata::Reader& reader = analysis.reader();
  facts.header = perfdata::DescribeFeatures(reader.features(), reader.endian());
  facts.counters = analysis.counters();
  if (result.read.damage) facts.damage = result.read.damage->ToString();
  return profile;
}

}  // namespace stackreel::analyze
