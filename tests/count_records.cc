// count_records FILE...
// Prints for each how many records of each type it holds, "TYPE COUNT" a line, then how the reading
// ended: "end complete", or "end OFFSET WHY".
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "os/file.h"
#include "perfdata/reader.h"

namespace stackreel::perfdata {
namespace {

class CountingSink : public RecordSink {
 public:
  Status OnRecord(const RawRecord& raw) override {
    ++counts[raw.type];
    return {};
  }
  std::map<uint32_t, uint64_t> counts;
};

Status Count(const std::string& path) {
  TRY_ASSIGN(const std::unique_ptr<FileSource> source, os::OpenSource(path));
  TRY_ASSIGN(const std::unique_ptr<Reader> reader, Reader::Open(*source));
  CountingSink sink;
  TRY_ASSIGN(const ReadEnd end, reader->ReadAll(sink));
  for (const auto& [type, count] : sink.counts) {
    std::printf("%s %llu\n", RecordTypeName(type).c_str(), static_cast<unsigned long long>(count));
  }
  if (end.complete) {
    std::puts("end complete");
  } else {
    std::printf("end %llu %s\n", static_cast<unsigned long long>(end.damage->offset.value_or(0)),
                end.damage->message.c_str());
  }
  return {};
}

}  // namespace
}  // namespace stackreel::perfdata

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (const auto counted = stackreel::perfdata::Count(argv[i]); !counted) {
      std::fprintf(stderr, "%s\n", counted.error().ToString().c_str());
      return 1;
    }
  }
  return 0;
}
