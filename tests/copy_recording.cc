// copy_recording [--pipe] [--level=N] [--decode] [--big-endian] INPUT OUTPUT
// Reads a recording and writes it again, so that perf can be asked whether both say the same.
// --decode takes every record apart and puts it together again instead of copying its bytes, and
// --big-endian does so in that byte order, the features too.
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "os/file.h"
#include "perfdata/feature_layout.h"
#include "perfdata/pac_mask.h"
#include "perfdata/reader.h"
#include "perfdata/writer.h"

namespace stackreel::perfdata {
namespace {

struct Options {
  WriterOptions writer;
  bool decode = false;
  std::string input, output;
};

class IgnoringSink : public RecordSink {
 public:
  Status OnRecord(const RawRecord&) override { return {}; }
};

class CopyingSink : public RecordSink {
 public:
  CopyingSink(const Reader& reader, Writer& writer, const Options& options)
      : reader_(reader), writer_(writer), options_(options) {}

  Status OnRecord(const RawRecord& raw) override {
    switch (raw.record_type()) {
      case RecordType::kAuxtrace:    // the reader does not keep what follows it
      case RecordType::kHeaderAttr:  // the writer writes these itself
      case RecordType::kHeaderFeature:
      case RecordType::kHeaderTracingData:
        return {};
      default:
        break;
    }
    if (!options_.decode) return writer_.WriteEncoded(raw.bytes);
    const std::optional<uint32_t> event = reader_.events().IndexOf(raw, reader_.endian());
    const Attr* attr = event ? &reader_.events().events()[*event].attr : nullptr;
    if (raw.record_type() == RecordType::kSample) {
      if (attr == nullptr) return Fail(ErrorKind::kDamaged, "a sample of no event");
      Sample sample;
      TRY(DecodeSample(raw, *attr, reader_.endian(), sample));
      return writer_.WriteSample(sample, raw.misc, *event);
    }
    TRY_ASSIGN(Record record, DecodeRecord(raw, {reader_.endian(), attr}));
    // Of an update of our own the bytes are numbers, too; the writer makes those of features.
    if (const auto* update = std::get_if<EventUpdate>(&record.body)) {
      if (FeatureOf(*update, reader_.endian())) return {};
      const auto mask = PacMaskOf(*update, reader_.endian());
      if (mask) record.body = MakePacMaskUpdate(*mask, options_.writer.endian);
    }
    return writer_.WriteRecord(record);
  }

 private:
  const Reader& reader_;
  Writer& writer_;
  const Options& options_;
};

// A feature of the recording in another byte order; empty if it does not decode.
std::vector<uint8_t> Swapped(uint32_t feature, ByteView bytes, const Reader& reader,
                             const Options& options) {
  const uint32_t nr_cpus = reader.features().nr_cpus ? reader.features().nr_cpus->second : 0;
  return WithFeatureBody(feature, [&]<typename Body>() -> std::vector<uint8_t> {
    const auto body = DecodeFeatureAs<Body>(bytes, reader.endian(), nr_cpus);
    return body ? EncodeFeature(*body, options.writer.endian) : std::vector<uint8_t>();
  });
}

Status Copy(const Options& options) {
  // Read once for all events and features: a pipe has them among its records.
  TRY_ASSIGN(const std::unique_ptr<FileSource> first_source, os::OpenSource(options.input));
  TRY_ASSIGN(const std::unique_ptr<Reader> first, Reader::Open(*first_source));
  IgnoringSink ignoring;
  TRY(first->ReadAll(ignoring));

  TRY_ASSIGN(const std::unique_ptr<FileSource> source, os::OpenSource(options.input));
  TRY_ASSIGN(const std::unique_ptr<Reader> reader, Reader::Open(*source));
  TRY_ASSIGN(const std::unique_ptr<os::OutputFile> output, os::OutputFile::Create(options.output));
  TRY_ASSIGN(const std::unique_ptr<Writer> writer,
             Writer::Create(*output, options.writer, first->events().events()));
  std::map<uint32_t, std::vector<uint8_t>> features = first->features().raw;
  if (options.writer.endian != first->endian()) {
    for (auto& [feature, bytes] : features) bytes = Swapped(feature, bytes, *first, options);
    std::erase_if(features, [](const auto& feature) { return feature.second.empty(); });
    // perf tells by HOSTNAME how wide the words of the feature bits are.
    features.try_emplace(static_cast<uint32_t>(Feature::kHostname),
                         EncodeString("host", options.writer.endian));
  }
  TRY(writer->WriteEarlyFeatures(features));
  CopyingSink copying(*reader, *writer, options);
  TRY(reader->ReadAll(copying));
  TRY(writer->Finish(features));
  return output->Commit();
}

int Main(int argc, char** argv) {
  Options options;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--pipe") {
      options.writer.container = Container::kPipe;
    } else if (arg == "--decode") {
      options.decode = true;
    } else if (arg == "--big-endian") {
      options.decode = true;
      options.writer.endian = Endian::kBig;
    } else if (arg.starts_with("--level=")) {
      options.writer.compression_level = std::stoi(std::string(arg.substr(8)));
    } else {
      files.emplace_back(arg);
    }
  }
  if (files.size() != 2) {
    std::fputs(
        "usage: copy_recording [--pipe] [--level=N] [--decode] [--big-endian] INPUT OUTPUT\n",
        stderr);
    return 2;
  }
  options.input = files[0];
  options.output = files[1];
  if (const Status copied = Copy(options); !copied) {
    std::fprintf(stderr, "%s\n", copied.error().ToString().c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace stackreel::perfdata

int main(int argc, char** argv) { return stackreel::perfdata::Main(argc, argv); }
