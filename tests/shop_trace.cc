#include "shop_trace.h"

#include <memory>
#include <string>
#include <vector>

#include "base/byte_writer.h"
#include "base/memory_io.h"
#include "support/write_file.h"
#include "tracedata/chunk_builder.h"
#include "tracedata/fake_trace.h"
#include "tracedata/fake_uftrace.h"
#include "tracedata/trace_writer.h"
#include "tracedata/uftrace_writer.h"

namespace stackreel {
namespace {

using tracedata::ChunkBuilder;
using tracedata::ValueFormat;

constexpr uint64_t kStart = 5'000'000;  // ticks, two a nanosecond

// In all ways: by a code, by a signal, and so that nobody was told how.
Status AddExits(tracedata::TraceWriter& writer) {
  constexpr uint64_t kEnd = kStart + 20'000'000;
  TRY(writer.Add(tracedata::ProcessExit{.ticks = kEnd, .pid = 100, .status = 42 << 8}));
  TRY(writer.Add(tracedata::ProcessExit{.ticks = kEnd, .pid = 101, .status = 9}));
  return writer.Add(tracedata::ProcessExit{.ticks = kEnd, .pid = 102});
}

Status AddFacts(tracedata::TraceWriter& writer) {
  TRY(writer.Add(tracedata::TraceClock{
      .origin_ticks = 0, .origin_nanoseconds = 1'000'000'000, .ticks_per_second = 2'000'000'000}));
  TRY(writer.Add(tracedata::TraceHost{.command_line = "shop --open",
                                      .host_name = "corner",
                                      .kernel = "6.1.0",
                                      .cpu = "some CPU",
                                      .cpus = 2,
                                      .memory_bytes = uint64_t{1} << 33}));
  TRY(writer.Add(tracedata::TraceModule{.id = 0, .path = "/opt/shop/bin/shop"}));
  TRY(writer.Add(tracedata::TraceModule{.id = 1, .path = "/opt/shop/lib/libzip.so.1"}));
  struct Function {
    const char* name;
    uint32_t module;
    std::vector<ValueFormat> arguments, returns;
  };
  const ValueFormat number{.kind = ValueFormat::Kind::kSigned, .bytes = 4, .name = "n"};
  const ValueFormat text{.kind = ValueFormat::Kind::kString, .bytes = 0, .name = "text"};
  const std::vector<Function> functions = {
      {"main", 0, {}, {}},
      {"serve", 0, {number}, {}},
      {"_ZN5Order5parseERKSs", 0, {text}, {number}},
      {"price", 0, {}, {}},
      {"deflate", 1, {}, {}},
  };
  for (uint32_t id = 0; id < functions.size(); ++id) {
    TRY(writer.Add(tracedata::TraceFunction{.id = id,
                                            .module = functions[id].module,
                                            .svma = Svma(0x1000 + 0x100 * uint64_t{id}),
                                            .size = 0x100,
                                            .name = functions[id].name,
                                            .arguments = functions[id].arguments,
                                            .returns = functions[id].returns}));
    TRY(writer.Add(tracedata::PatchEvent{.ticks = kStart - 100, .pid = 100, .function = id}));
  }
  TRY(writer.Add(tracedata::PatchEvent{.ticks = kStart - 100,
                                       .pid = 100,
                                       .action = tracedata::PatchEvent::Action::kRefused,
                                       .function = 0,
                                       .reason = "too short"}));
  TRY(AddExits(writer));
  TRY(writer.Add(tracedata::TraceThread{.index = 0, .pid = 100, .tid = 100, .comm = "shop"}));
  return writer.Add(tracedata::TraceThread{.index = 1, .pid = 100, .tid = 101, .comm = "clerk"});
}

Status Serve(ChunkBuilder& builder, uint64_t& now, int32_t customer) {
  ByteWriter number(Endian::kLittle), text(Endian::kLittle), result(Endian::kLittle);
  number.U32(static_cast<uint32_t>(customer));
  text.U16(6);
  text.Text("2 eggs");
  result.U32(static_cast<uint32_t>(-customer));
  TRY(builder.Enter(now += 400, 1, number.view()));
  TRY(builder.Enter(now += 100, 2, text.view()));
  TRY(builder.Enter(now += 60, 3));
  TRY(builder.Exit(now += 500, 3));
  TRY(builder.Exit(now += 2'000, 2, result.view()));
  TRY(builder.Enter(now += 80, 4));
  TRY(builder.Exit(now += 6'000'000, 4, {}, customer == 3));
  return builder.Exit(now += 40, 1);
}

Status WriteTrace(tracedata::TraceWriter& writer) {
  TRY(AddFacts(writer));
  ChunkBuilder shop(writer, 0, 512), clerk(writer, 1, 512);
  uint64_t shop_now = kStart, clerk_now = kStart + 3'000;
  TRY(shop.Enter(shop_now, 0));
  for (int32_t customer = 1; customer <= 3; ++customer) {
    TRY(Serve(shop, shop_now, customer));
    if (customer > 1) TRY(Serve(clerk, clerk_now, customer));
  }
  TRY(clerk.Lost(clerk_now += 10, tracedata::LossReason::kInterrupted, 12));
  TRY(shop.Exit(shop_now += 1'000, 0));
  TRY(shop.Flush());
  TRY(clerk.Enter(clerk_now += 10, 3));  // its end was not recorded
  TRY(clerk.Flush());
  return writer.Flush();
}

}  // namespace

Status WriteShopTraces(const std::filesystem::path& folder) {
  tracedata::FakeTrace trace;
  TRY_ASSIGN(tracedata::TraceWriter writer,
             tracedata::TraceWriter::Begin(trace.calls, trace.facts, 0));
  TRY(WriteTrace(writer));
  const ByteView calls = trace.calls.bytes();
  TRY(WriteFile(folder / "shop.trace" / tracedata::kCallsFile, calls));
  TRY(WriteFile(folder / "shop.trace" / tracedata::kFactsFile, trace.facts.bytes()));
  TRY(WriteFile(folder / "cut.trace" / tracedata::kCallsFile, calls.first(calls.size() - 20)));
  TRY(WriteFile(folder / "cut.trace" / tracedata::kFactsFile, trace.facts.bytes()));
  TRY_ASSIGN(const std::unique_ptr<tracedata::TraceSource> source, trace.Open());
  tracedata::MemoryFolder written;
  tracedata::MemoryFolderWriter files(written);
  TRY(tracedata::WriteUftraceData(*source, files));
  for (const auto& [name, bytes] : written.files) {
    TRY(WriteFile(folder / "shop.uftrace" / name, bytes));
  }
  return {};
}

}  // namespace stackreel
