#include <memory>
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
    Take(sample, MarkerStack(sample), sample.frames.size());
    return {};
  }
  // Most of a sample's stack mostly was there before: that part is looked up ahead.
  std::unique_ptr<Portion> MakePortion(size_t /*workers*/) override {
    return std::make_unique<KnownStacks>();
  }
  Status Prepare(const AnalyzedSample& sample, size_t /*worker*/, Portion& portion) override {
    LookUp(sample, static_cast<KnownStacks&>(portion));
    return {};
  }
  Status OnPortion(Portion& portion) override {
    auto& known = static_cast<KnownStacks&>(portion);
    for (const KnownStack& known_stack : known.stacks) {
      const AnalyzedSample& sample = *known_stack.sample;
      const bool from_root = known_stack.left == sample.frames.size();
      Take(sample, from_root ? MarkerStack(sample) : known_stack.stack, known_stack.left);
    }
    for (Profile::Unresolved* unresolved : known.unresolved) ++unresolved->frames;
    known.stacks.clear();
    known.unresolved.clear();
    return {};
  }

 private:
  // How far from the root a sample's stack is in the profile: all but the `left` innermost frames.
  struct KnownStack {
    const AnalyzedSample* sample = nullptr;
    StackId stack = profile::kEmptyStack;
    size_t left = 0;
  };
  struct KnownStacks : Portion {
    std::vector<KnownStack> stacks;
    std::vector<Profile::Unresolved*> unresolved;  // one for each frame without a symbol
  };

  // Changes nothing but `known`.
  void LookUp(const AnalyzedSample& sample, KnownStacks& known) const {
    KnownStack& out = known.stacks.emplace_back();
    out.sample = &sample;
    out.left = sample.frames.size();
    if (sample.user_end && !MarkerOf(*sample.user_end).empty()) return;
    while (out.left > 0) {
      const auto it = by_symbols_.find(sample.frames[out.left - 1].symbols.data());
      if (it == by_symbols_.end()) return;
      StackId stack = out.stack;
      for (const FrameId id : it->second.ids) {
        stack = profile_.FindPushed(stack, id);
        if (stack == profile::kEmptyStack) return;
      }
      if (it->second.unresolved != nullptr) known.unresolved.push_back(it->second.unresolved);
      out.stack = stack;
      --out.left;
    }
  }

  // What stands outside a stack that is not whole.
  StackId MarkerStack(const AnalyzedSample& sample) {
    if (!sample.user_end) return profile::kEmptyStack;
    const std::string marker = MarkerOf(*sample.user_end);
    return marker.empty() ? profile::kEmptyStack
                          : profile_.Push(profile::kEmptyStack, MarkerFrame(marker));
  }

  // Adds a sample, whose stack is `stack` and in it the `left` innermost frames.
  void Take(const AnalyzedSample& sample, StackId stack, size_t left) {
    for (size_t i = left; i-- > 0;) {
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
  }

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
  facts.unfinished = result.read.unfinished;
  if (result.read.damage) facts.damage = result.read.damage->ToString();
  return profile;
}

}  // namespace stackreel::analyze
