#include "analyze/function_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/fake_recording.h"
#include "perfdata/feature_layout.h"

namespace stackreel::analyze {
namespace {

using perfdata::kContextKernel;
using perfdata::kContextUser;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr uint64_t kKernelText = 0xffffffff81000000;

class FunctionNamesTest : public testing::Test {
 protected:
  FunctionNamesTest() {
    files_.elf["/opt/shop/prog"] = MakeFile();
    files_.elf["/usr/lib/libc.so.6"] = MakeFile();
  }
  // What is anonymised at a level, with functions named.
  std::vector<uint8_t> Anonymized(const std::vector<uint8_t>& bytes, anonymize::Level level) {
    MemorySource source(bytes);
    MemorySink sink;
    anonymize::Options options;
    options.level = level;
    options.name_functions = [this](const anonymize::RecordingHead& head,
                                    perfdata::TimedSink& next) {
      return MakeFunctionNamesStep(head, next, files_);
    };
    const auto key = anonymize::Key::FromSecret(AsBytes("a secret of 20 bytes"));
    const auto outcome =
        anonymize::Anonymize(anonymize::RereadableRecording(source), sink, *key, options);
    CHECK(outcome.has_value());
    named_ = outcome->report.counters.Get("anonymize.functions_named");
    return sink.bytes();
  }
  // The chains as one sees them who has no files.
  std::vector<std::string> Seen(const std::vector<uint8_t>& bytes) {
    class NoFiles : public symbolize::ModuleFileProvider {
     public:
      symbolize::ModuleFiles FilesOf(const session::Module&) override { return {}; }
    } no_files;
    MemorySource source(bytes);
    auto reader = perfdata::Reader::Open(source);
    CHECK(reader.has_value());
    BackwardExecutor executor;
    Analysis analysis(**reader, no_files, executor, {});
    TextSink sink;
    sink.analysis = &analysis;
    CHECK(analysis.Run(sink).has_value());
    return sink.lines;
  }

  FakeFiles files_;
  uint64_t named_ = 0;
};

TEST_F(FunctionNamesTest, ReadersWithoutTheFilesSeeFunctions) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    FakeRecording recording({MakeEvent(kChainSample, 1, "e")}, endian);
    recording.Arch("x86_64");
    recording.KernelMmap(kKernelText, 0x1000000, "[kernel.kallsyms]_text");
    const uint64_t offset = TextOffset(files_.elf["/opt/shop/prog"]);
    constexpr uint64_t kLibc = 0x7f0000000000;
    recording.Mmap(1, kBias + 0x1000, 0x4000, offset, "/opt/shop/prog");
    recording.Mmap(1, kLibc + 0x1000, 0x4000, offset, "/usr/lib/libc.so.6");
    recording.Chain({kContextKernel, kKernelText + 0x110, kKernelText + 0x210, kContextUser,
                     kLibc + 0x1010, kBias + 0x1010, kBias + 0x2100, 0x1234},
                    kKernelMode);
    recording.Chain({kContextUser, kBias + 0x1080, kBias + 0x3000, kBias + 0x2010});
    const std::vector<uint8_t> bytes = recording.Take();
    EXPECT_THAT(Seen(bytes)[0], Not(HasSubstr("f1000")));

    const auto symbols = Seen(Anonymized(bytes, anonymize::Level::kSymbols));
    EXPECT_EQ(named_, 6);
    // Those of public modules have their names, the others pseudonyms; equal ones equal ones.
    EXPECT_THAT(symbols, ElementsAre(MatchesRegex(":[0-9]+: k:k_inner k:k_outer' f1000 f_[g-z]+' "
                                                  "f_[g-z]+' [0-9a-f]+'"),
                                     MatchesRegex(":[0-9]+: f_[g-z]+ f_[g-z]+' f_[g-z]+'")));
    const auto word = [](const std::string& line, size_t index) {
      size_t at = 0;
      for (size_t i = 0; i < index; ++i) at = line.find(' ', at) + 1;
      const std::string text = line.substr(at, line.find(' ', at) - at);
      return text.substr(0, text.find('\''));
    };
    EXPECT_EQ(word(symbols[0], 4), word(symbols[1], 1));  // f1000
    EXPECT_EQ(word(symbols[0], 5), word(symbols[1], 3));  // f2000
    EXPECT_NE(word(symbols[1], 1), word(symbols[1], 2));
    // Nothing of the names is in the file.
    const std::vector<uint8_t> out = Anonymized(bytes, anonymize::Level::kSymbols);
    EXPECT_THAT(std::string(AsText(out)), AllOf(Not(HasSubstr("f2000")), Not(HasSubstr("f3000")),
                                                Not(HasSubstr("prog")), HasSubstr("libc.so.6")));
    // Anonymised again it loses no function.
    files_.elf.clear();
    EXPECT_THAT(Seen(Anonymized(out, anonymize::Level::kSymbols))[1],
                MatchesRegex(":[0-9]+: f_[g-z]+ f_[g-z]+' f_[g-z]+'"));
    files_.elf["/opt/shop/prog"] = files_.elf["/usr/lib/libc.so.6"] = MakeFile();
  }
}

TEST_F(FunctionNamesTest, FilesAreTakenRatherThanNames) {
  perfdata::FunctionNames names;
  names.modules = {{"/opt/shop/prog", {{0x10, 0x10, "wrong"}}}, {"/gone", {{0x10, 0x10, "right"}}}};
  perfdata::Features features;
  features.raw[static_cast<uint32_t>(perfdata::Feature::kStackreelFunctions)] =
      perfdata::EncodeFeature(names, Endian::kLittle);
  RecordedFunctionNames provider(files_, features, Endian::kLittle);
  session::Module module;
  module.key.path = "/opt/shop/prog";
  EXPECT_EQ(provider.FilesOf(module).perf_map, nullptr);
  module.key.path = "/gone";
  ASSERT_NE(provider.FilesOf(module).perf_map, nullptr);
  EXPECT_EQ(AsText(provider.FilesOf(module).perf_map->bytes()), "10 10 right\n");
  // A damaged feature is as none.
  for (auto& [feature, bytes] : features.raw) bytes.resize(10);
  EXPECT_EQ(provider.FilesOf(module).perf_map, nullptr);
  EXPECT_EQ(provider.FilesOf(module).why, "no file");
}

}  // namespace
}  // namespace stackreel::analyze
