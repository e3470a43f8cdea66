#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/byte_writer.h"
#include "tracedata/call_losses.h"
#include "tracedata/fake_trace.h"
#include "tracedata/fake_uftrace.h"
#include "tracedata/loss_reason.h"
#include "tracedata/trace_copy.h"
#include "tracedata/uftrace_record.h"
#include "tracedata/uftrace_text.h"

namespace stackreel::tracedata {
namespace {

using testing::HasSubstr;

constexpr uint64_t kBase = 0x55b20653f000;

// A recording as uftrace 0.13 made it, cut down.
class UftraceData : public testing::Test {
 protected:
  UftraceData() {
    SetInfo(4);
    folder_.SetText("task.txt",
                    "SESS timestamp=10.000000000 pid=5 sid=00ab exename=\"/bin/prog name\"\n"
                    "TASK timestamp=10.000000001 tid=5 pid=5\n"
                    "FORK timestamp=10.000000900 pid=7 ppid=5\n"
                    "nonsense\n");
    folder_.SetText("sid-00ab.map",
                    "55b20653f000-55b206544000 r-xp 00000000 00:00 0            "
                    "/bin/prog name build-id:1be3271a\n"
                    "7ffe37699000-7ffe376ba000 rw-p 00000000 00:00 0  [stack]\n");
    folder_.SetText("prog name.sym",
                    "# symbols: 4\n0000000000001000 T _Z4mainv\n0000000000001020 t leaf\n"
                    "0000000000001030 00000008 T sized\n0000000000001040 ? __sym_end\n");
    folder_.SetText("prog name.dbg", "F: 1020 leaf\nL: 4 t.c\nA: @arg1/i32,arg2/s,fparg1/64\n");
  }
  void SetInfo(uint32_t version) {
    ByteWriter info(Endian::kLittle);
    info.Text(kUftraceMagic);
    info.U32(version);
    info.U16(40);
    info.U8(1);
    info.U8(2);
    info.U64(0x363);
    info.U64(0x3bff);
    info.U64(1024);
    info.Text(
        "exename:/bin/prog name\ncmdline:uftrace record a=b\nosinfo:hostname=vm\n"
        "retspec:leaf@retval/i32\n");
    folder_.files["info"] = info.Take();
  }
  void Put(const std::string& file, uint64_t time, UftraceType type, uint32_t depth,
           uint64_t address, bool more = false) {
    uint8_t bytes[UftraceRecord::kSize];
    UftraceRecord{.nanoseconds = time,
                  .type = type,
                  .more = more,
                  .depth = depth,
                  .address = type == UftraceType::kLost ? address : kBase + address}
        .Encode(bytes);
    auto& out = folder_.files[file];
    out.insert(out.end(), bytes, bytes + sizeof(bytes));
  }
  void PutPayload(const std::string& file, ByteView bytes) {
    auto& out = folder_.files[file];
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  // "+main@1 -main@2".
  std::string Read(size_t row) {
    auto source = OpenUftraceData(folder_.Reader());
    EXPECT_TRUE(source) << source.error().ToString();
    if (!source) return "";
    std::string text = TextOf(**source, row);
    damage_ = (*source)->damage();
    counters_ = (*source)->counters();
    return text;
  }
  static std::string TextOf(TraceSource& source, size_t row) {
    std::string text;
    for (const FakeEvent& event : ReadRun(source, row)) {
      const char* sign = event.kind == EventKind::kEntry  ? "+"
                         : event.kind == EventKind::kExit ? "-"
                         : event.kind == EventKind::kLeft ? "~"
                                                          : "!";
      std::string name;
      for (const TraceFunction& function : source.tables().functions) {
        if (function.id == event.function && event.kind != EventKind::kLost) name = function.name;
      }
      text += sign + name + "@" + std::to_string(event.ticks) + " ";
    }
    return text;
  }

  MemoryFolder folder_;
  std::string damage_;
  Counters counters_;
};

TEST_F(UftraceData, CallsAreRead) {
  for (const uint32_t version : {3u, 4u}) {
    SetInfo(version);
    folder_.files.erase("5.dat");
    Put("5.dat", 100, UftraceType::kEntry, 0, 0x1008);
    Put("5.dat", 110, UftraceType::kEntry, 1, 0x1024);
    Put("5.dat", 120, UftraceType::kExit, 1, 0x1024);
    Put("5.dat", 125, UftraceType::kLost, 1, 77);
    Put("5.dat", 130, UftraceType::kExit, 0, 0x1008);
    EXPECT_EQ(Read(0), "+_Z4mainv@100 +leaf@110 -leaf@120 !@125 -_Z4mainv@130 ");
    EXPECT_EQ(damage_, "");
    EXPECT_EQ(counters_.Get("uftrace.bad_line"), 1u);
  }
}

TEST_F(UftraceData, SymbolsEndWhereTheySay) {
  Put("5.dat", 100, UftraceType::kEntry, 0, 0x1034);
  Put("5.dat", 101, UftraceType::kEntry, 1, 0x1038);     // behind sized's eight bytes
  Put("5.dat", 102, UftraceType::kEntry, 2, 0x1044);     // behind the end
  Put("5.dat", 103, UftraceType::kEntry, 3, 0x9000000);  // in no module
  EXPECT_EQ(Read(0), "+sized@100 +<55b206540038>@101 +<55b206540044>@102 +<55b20f53f000>@103 ");
  EXPECT_EQ(counters_.Get("uftrace.unknown_symbol"), 3u);
}

TEST_F(UftraceData, CallsWithoutExitEndByDepth) {
  Put("5.dat", 100, UftraceType::kEntry, 0, 0x1000);
  Put("5.dat", 110, UftraceType::kEntry, 1, 0x1020);
  Put("5.dat", 120, UftraceType::kEntry, 2, 0x1020);
  Put("5.dat", 130, UftraceType::kEntry, 1, 0x1030);  // longjmp went past two
  Put("5.dat", 140, UftraceType::kExit, 0, 0x1000);
  EXPECT_EQ(Read(0),
            "+_Z4mainv@100 +leaf@110 +leaf@120 ~leaf@130 ~leaf@130 +sized@130 ~sized@140 "
            "-_Z4mainv@140 ");
}

TEST_F(UftraceData, AnExitOfAnotherFunctionEndsTheCallAtItsDepth) {
  Put("5.dat", 100, UftraceType::kEntry, 0, 0x1000);
  Put("5.dat", 105, UftraceType::kEntry, 1, 0x1030);  // setjmp
  Put("5.dat", 106, UftraceType::kExit, 1, 0x1030);
  Put("5.dat", 110, UftraceType::kEntry, 1, 0x1020);
  Put("5.dat", 120, UftraceType::kExit, 1, 0x1030);  // again
  EXPECT_EQ(Read(0), "+_Z4mainv@100 +sized@105 -sized@106 +leaf@110 ~leaf@120 -sized@120 ");
}

TEST_F(UftraceData, ValuesAreRead) {
  Put("5.dat", 100, UftraceType::kEntry, 0, 0x1020, true);
  ByteWriter values(Endian::kLittle);
  values.U32(static_cast<uint32_t>(-3));
  values.U16(5);
  values.Text("hello");
  values.AlignTo(4);
  values.U64(0x4004000000000000);
  values.AlignTo(8);
  PutPayload("5.dat", values.view());
  Put("5.dat", 110, UftraceType::kExit, 0, 0x1020, true);
  values.Clear();
  values.U64(42);
  PutPayload("5.dat", values.view());
  auto source = OpenUftraceData(folder_.Reader());
  const std::vector<FakeEvent> events = ReadRun(**source, 0);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].values.size(), 4 + 2 + 5 + 8u);
  EXPECT_EQ(events[0].values.substr(6, 5), "hello");
  EXPECT_EQ(events[1].values, std::string("\x2a\0\0\0", 4));
  const TraceFunction& leaf = (*source)->tables().functions.at(0);
  EXPECT_EQ(leaf.arguments.size(), 3u);
  EXPECT_EQ(leaf.arguments.at(1).kind, ValueFormat::Kind::kString);
  EXPECT_EQ(leaf.returns.size(), 1u);
}

TEST_F(UftraceData, ValuesThatNothingDescribesArePassedOver) {
  Put("5.dat", 100, UftraceType::kEntry, 0, 0x1000, true);
  PutPayload("5.dat", AsBytes("16 bytes of them"));
  Put("5.dat", 110, UftraceType::kExit, 0, 0x1000);
  EXPECT_EQ(Read(0), "+_Z4mainv@100 -_Z4mainv@110 ");
  EXPECT_EQ(counters_.Get("uftrace.unknown_values"), 1u);
}

TEST_F(UftraceData, AForkedChildHasItsParentsFunctions) {
  Put("7.dat", 1000, UftraceType::kEntry, 0, 0x1020);
  EXPECT_EQ(Read(1), "+leaf@1000 ");
}

TEST_F(UftraceData, IsReadUpToDamage) {
  Put("5.dat", 100, UftraceType::kEntry, 0, 0x1000);
  PutPayload("5.dat", AsBytes("no record at all"));
  Put("5.dat", 110, UftraceType::kExit, 0, 0x1000);
  EXPECT_EQ(Read(0), "+_Z4mainv@100 ");
  EXPECT_THAT(damage_, HasSubstr("5.dat: offset 0x10"));
  EXPECT_EQ(counters_.Get("tracedata.damaged_bytes"), 32u);
}

TEST_F(UftraceData, OfACutFileTheRestIsTold) {
  Put("5.dat", 100, UftraceType::kEntry, 0, 0x1000);
  PutPayload("5.dat", AsBytes("cut"));
  EXPECT_EQ(Read(0), "+_Z4mainv@100 ");
  EXPECT_THAT(damage_, HasSubstr("within a record"));
}

TEST_F(UftraceData, OtherFormatsAreRefused) {
  for (const auto& [at, value] : {std::pair<size_t, uint8_t>{8, 5}, {8, 2}, {14, 2}, {15, 1}}) {
    SetInfo(4);
    folder_.files["info"][at] = value;
    const auto source = OpenUftraceData(folder_.Reader());
    ASSERT_FALSE(source);
    EXPECT_EQ(source.error().kind, ErrorKind::kUnsupported);
  }
  folder_.files["info"].resize(20);
  EXPECT_FALSE(OpenUftraceData(folder_.Reader()));
}

MemoryFolder WrittenAsUftraces(TraceSource& source) {
  MemoryFolder written;
  MemoryFolderWriter files(written);
  EXPECT_TRUE(WriteUftraceData(source, files));
  return written;
}

TEST_F(UftraceData, ATraceWrittenAsUftracesIsReadAsItWas) {
  FakeTrace trace;
  auto writer = TraceWriter::Begin(trace.calls, trace.facts, 1);
  (void)writer->Add(TraceClock{.origin_ticks = 0, .ticks_per_second = 1'000'000'000});
  (void)writer->Add(TraceModule{.id = 3, .path = "/bin/prog"});
  for (uint32_t id = 0; id < 10; ++id) {
    (void)writer->Add(TraceFunction{.id = id,
                                    .module = id == 9 ? 77u : 3u,
                                    .svma = Svma(0x1000 + id / 2 * 16),  // some at one place
                                    .size = 16,
                                    .name = "function " + std::to_string(id)});
  }
  for (uint32_t i = 0; i < 2; ++i) {
    (void)writer->Add(TraceThread{.index = i, .pid = 1, .tid = 10 + i, .comm = "prog"});
    ChunkBuilder builder(*writer, i);
    std::vector<FakeEvent> run = RandomRun(i, 2000);
    for (FakeEvent& event : run) {
      event.values.clear();
      if (event.kind == EventKind::kLeft) event.kind = EventKind::kExit;
    }
    WriteRun(run, builder);
    (void)builder.Flush();
  }
  (void)writer->Flush();
  auto source = trace.Open();
  MemoryFolder written = WrittenAsUftraces(**source);
  // The module has no build-id, and uftrace reads nothing behind an empty one. Bit 1 of the mask
  // says that there is one.
  const std::vector<uint8_t>& info = written.files.at("info");
  EXPECT_EQ(std::string(info.begin(), info.end()).find("build_id"), std::string::npos);
  EXPECT_EQ(info.at(24) & 2, 0);
  auto again = OpenUftraceData(written.Reader());
  ASSERT_TRUE(again);
  ASSERT_EQ((*again)->tables().threads.size(), 2u);
  for (size_t row = 0; row < 2; ++row) {
    EXPECT_EQ(TextOf(**again, row), TextOf(**source, row));
  }
  EXPECT_EQ((*again)->counters().Get("uftrace.unknown_symbol"), 0u);
  // And back.
  FakeTrace copy;
  auto copy_writer = TraceWriter::Begin(copy.calls, copy.facts, 1);
  ASSERT_TRUE(CopyTrace(**again, *copy_writer));
  auto third = copy.Open();
  EXPECT_EQ(TextOf(**third, 1), TextOf(**source, 1));
}

// Such as of a thread that found no space to the end.
TEST_F(UftraceData, LossesThatOnlyFactsTellOfAreWritten) {
  FakeTrace trace;
  auto writer = TraceWriter::Begin(trace.calls, trace.facts, 1);
  (void)writer->Add(TraceClock{.origin_ticks = 0, .ticks_per_second = 1'000'000'000});
  (void)writer->Add(TraceModule{.id = 3, .path = "/bin/prog"});
  (void)writer->Add(
      TraceFunction{.id = 0, .module = 3, .svma = Svma(0x1000), .size = 16, .name = "f0"});
  (void)writer->Add(TraceThread{.index = 0, .pid = 10, .tid = 10, .comm = "prog"});
  ChunkBuilder builder(*writer, 0);
  WriteRun({{.kind = EventKind::kEntry, .ticks = 10, .function = 0},
            {.kind = EventKind::kExit, .ticks = 40, .function = 0}},
           builder);
  (void)builder.Flush();
  (void)writer->Add(TraceLoss{.pid = 10, .reason = "could not be written", .calls = 30});
  for (const uint32_t pid : {10u, 11u}) {  // nothing was recorded of the second
    (void)writer->Add(
        TraceLoss{.pid = pid, .reason = std::string(LossReasonText(0)), .calls = pid});
  }
  (void)writer->Flush();
  auto source = trace.Open();
  MemoryFolder written = WrittenAsUftraces(**source);
  auto again = OpenUftraceData(written.Reader());
  ASSERT_TRUE(again);
  ASSERT_EQ((*again)->tables().threads.size(), 2u);
  for (size_t row = 0; row < 2; ++row) {
    const std::unique_ptr<ThreadCalls> thread = (*again)->CallsOf(row);
    const uint32_t pid = (*again)->tables().threads[row].pid;
    CallLosses losses;
    while (true) {
      const auto batch = thread->Next();
      ASSERT_TRUE(batch);
      if (batch->events.empty()) break;
      for (const OrderedEvent& event : batch->events) losses.Add(event);
    }
    EXPECT_EQ(losses.total(), pid == 10 ? 40 : 11);
    EXPECT_EQ(TextOf(**again, row), pid == 10 ? "+f0@10 -f0@40 !@40 " : "!@40 ");
  }
}

// Whose first chunk may be written first: it begins with what its parent had open.
TEST_F(UftraceData, AForkedChildIsToldOfBehindItsParent) {
  FakeTrace trace;
  auto writer = TraceWriter::Begin(trace.calls, trace.facts, 1);
  (void)writer->Add(TraceClock{.origin_ticks = 0, .ticks_per_second = 1'000'000'000});
  (void)writer->Add(TraceModule{.id = 3, .path = "/bin/prog"});
  (void)writer->Add(
      TraceFunction{.id = 0, .module = 3, .svma = Svma(0x1000), .size = 16, .name = "f0"});
  (void)writer->Add(ProcessFork{.ticks = 20, .pid = 11, .parent_pid = 10});
  for (uint32_t i = 0; i < 2; ++i) {
    (void)writer->Add(TraceThread{.index = i, .pid = 11 - i, .tid = 11 - i, .comm = "prog"});
    ChunkBuilder builder(*writer, i);
    WriteRun({{.kind = EventKind::kEntry, .ticks = 10, .function = 0},
              {.kind = EventKind::kExit, .ticks = 40, .function = 0}},
             builder);
    (void)builder.Flush();
  }
  (void)writer->Flush();
  auto source = trace.Open();
  const MemoryFolder written = WrittenAsUftraces(**source);
  const std::vector<uint8_t>& tasks = written.files.at("task.txt");
  const std::string text(tasks.begin(), tasks.end());
  EXPECT_LT(text.find("SESS "), text.find("FORK ")) << text;
  EXPECT_LT(text.find("TASK "), text.find("FORK ")) << text;
}

// It is another thread of ours, but no other of the process's.
TEST_F(UftraceData, WhatIsExecutedGoesOnInTheSameFile) {
  for (const bool executes : {true, false}) {
    FakeTrace trace;
    auto writer = TraceWriter::Begin(trace.calls, trace.facts, 1);
    (void)writer->Add(TraceClock{.origin_ticks = 0, .ticks_per_second = 1'000'000'000});
    (void)writer->Add(TraceModule{.id = 3, .path = "/bin/prog"});
    for (uint32_t id = 0; id < 2; ++id) {
      (void)writer->Add(TraceFunction{.id = id,
                                      .module = 3,
                                      .svma = Svma(0x1000 + id * 16),
                                      .size = 16,
                                      .name = "f" + std::to_string(id)});
    }
    if (executes) (void)writer->Add(ProcessExec{.ticks = 20, .pid = 10, .path = "/bin/prog"});
    const std::vector<FakeEvent> runs[] = {
        {{.kind = EventKind::kEntry, .ticks = 10, .function = 0},
         {.kind = EventKind::kEntry, .ticks = 15, .function = 1}},
        {{.kind = EventKind::kEntry, .ticks = 30, .function = 0},
         {.kind = EventKind::kExit, .ticks = 40, .function = 0}}};
    for (uint32_t i = 0; i < 2; ++i) {
      (void)writer->Add(TraceThread{.index = i, .pid = 10, .tid = 10, .comm = "prog"});
      ChunkBuilder builder(*writer, i);
      WriteRun(runs[i], builder);
      (void)builder.Flush();
    }
    (void)writer->Flush();
    auto source = trace.Open();
    MemoryFolder written = WrittenAsUftraces(**source);
    auto again = OpenUftraceData(written.Reader());
    ASSERT_TRUE(again);
    ASSERT_EQ((*again)->tables().threads.size(), executes ? 1u : 2u);
    EXPECT_EQ((*again)->tables().threads[0].tid, 10u);
    EXPECT_EQ(TextOf(**again, 0),
              executes ? "+f0@10 +f1@15 -f1@30 -f0@30 +f0@30 -f0@40 " : "+f0@10 +f1@15 ");
  }
}

// Of structs alone a trace records nothing; uftrace shows them where a record says that more comes.
TEST_F(UftraceData, StructsAreWrittenThoughNothingIsRecordedOfThem) {
  FakeTrace trace;
  auto writer = TraceWriter::Begin(trace.calls, trace.facts, 1);
  (void)writer->Add(TraceClock{.origin_ticks = 0, .ticks_per_second = 1'000'000'000});
  (void)writer->Add(TraceModule{.id = 3, .path = "/bin/prog"});
  const ValueFormat structure = {.kind = ValueFormat::Kind::kStruct};
  (void)writer->Add(TraceFunction{.id = 0,
                                  .module = 3,
                                  .svma = Svma(0x1000),
                                  .size = 16,
                                  .name = "structs",
                                  .arguments = {structure, structure},
                                  .returns = {structure}});
  (void)writer->Add(TraceThread{.index = 0, .pid = 1, .tid = 10, .comm = "prog"});
  ChunkBuilder builder(*writer, 0);
  WriteRun({{.kind = EventKind::kEntry, .ticks = 10},
            {.kind = EventKind::kExit, .ticks = 20},
            {.kind = EventKind::kEntry, .ticks = 30},
            {.kind = EventKind::kLeft, .ticks = 40}},
           builder);
  (void)builder.Flush();
  (void)writer->Flush();
  auto source = trace.Open();
  MemoryFolder written = WrittenAsUftraces(**source);
  auto again = OpenUftraceData(written.Reader());
  ASSERT_TRUE(again);
  std::string text;
  const auto calls = (*again)->CallsOf(0);
  for (auto batch = calls->Next(); batch && !batch->events.empty(); batch = calls->Next()) {
    for (const OrderedEvent& event : batch->events) {
      text += event.kind() == EventKind::kEntry ? " entry" : " exit";
      if (HasValues(event.head)) text += "+";
    }
  }
  EXPECT_EQ(text, " entry+ exit+ entry+ exit");
}

}  // namespace
}  // namespace stackreel::tracedata
