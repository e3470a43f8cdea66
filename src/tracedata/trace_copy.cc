#include "tracedata/trace_copy.h"

#include <memory>
#include <unordered_map>

#include "tracedata/chunk_builder.h"
#include "tracedata/open_calls.h"

namespace stackreel::tracedata {

namespace {

class TraceCopier {
 public:
  TraceCopier(TraceSource& source, TraceWriter& writer) : source_(source), writer_(writer) {}

  Status CopyFacts() {
    const TraceTables& tables = source_.tables();
    TRY(writer_.Add(tables.clock));
    TRY(writer_.Add(tables.host));
    TRY(AddAll(tables.threads));
    TRY(AddAll(tables.loads));
    TRY(AddAll(tables.forks));
    TRY(AddAll(tables.execs));
    TRY(AddAll(tables.exits));
    TRY(AddAll(tables.enumerations));
    TRY(CopyFunctions());
    std::unordered_map<uint32_t, uint32_t> rows;
    for (uint32_t row = 0; row < tables.functions.size(); ++row) {
      rows.try_emplace(tables.functions[row].id, row);
    }
    for (PatchEvent patch : tables.patches) {
      if (const auto row = rows.find(patch.function); row != rows.end()) {
        patch.function = row->second;
      }
      TRY(writer_.Add(patch));
    }
    TRY(AddAll(tables.filters));
    losses_.AddFacts(tables);
    return AddAll(tables.losses);
  }

  Status CopyThread(size_t row) {
    const std::unique_ptr<ThreadCalls> calls = source_.CallsOf(row);
    ChunkBuilder builder(writer_, source_.tables().threads[row].index);
    OpenCalls open;
    while (true) {
      TRY_ASSIGN(const EventBatch batch, calls->Next());
      if (batch.events.empty()) return builder.Flush();
      TRY(CopyFunctions());
      for (const OrderedEvent& event : batch.events) TRY(CopyEvent(batch, event, open, builder));
    }
  }

  [[nodiscard]] const CallLosses& losses() const { return losses_; }

 private:
  template <typename Fact>
  Status AddAll(const std::vector<Fact>& facts) {
    for (const Fact& fact : facts) TRY(writer_.Add(fact));
    return {};
  }

  // Those that have come since the last time, and modules.
  Status CopyFunctions() {
    const TraceTables& tables = source_.tables();
    for (; modules_ < tables.modules.size(); ++modules_) TRY(writer_.Add(tables.modules[modules_]));
    for (; functions_ < tables.functions.size(); ++functions_) {
      TraceFunction function = tables.functions[functions_];
      function.id = static_cast<uint32_t>(functions_);
      TRY(writer_.Add(function));
    }
    return {};
  }

  Status CopyEvent(const EventBatch& batch, const OrderedEvent& event, OpenCalls& open,
                   ChunkBuilder& builder) {
    const uint32_t function = event.function();
    switch (event.kind()) {
      case EventKind::kEntry:
        open.Enter(function);
        return builder.Enter(event.ticks, function, batch.ValuesOf(event));
      case EventKind::kLost:
        losses_.Add(event);
        return builder.Lost(event.ticks, static_cast<LossReason>(function), event.detail);
      default:
        break;
    }
    Status status;
    const bool known = open.End(function, [&](uint32_t inner) {
      const Status left = builder.Exit(event.ticks, inner, {}, true);
      if (!left) status = left;
    });
    if (!known || !status) return status;
    return builder.Exit(event.ticks, function, batch.ValuesOf(event),
                        event.kind() == EventKind::kLeft);
  }

  TraceSource& source_;
  TraceWriter& writer_;
  CallLosses losses_;
  size_t modules_ = 0, functions_ = 0;  // those that have been written
};

}  // namespace

Result<CallLosses> CopyTrace(TraceSource& source, TraceWriter& writer) {
  TraceCopier copier(source, writer);
  TRY(copier.CopyFacts());
  for (size_t row = 0; row < source.tables().threads.size(); ++row) TRY(copier.CopyThread(row));
  TRY(writer.Flush());
  return copier.losses();
}

}  // namespace stackreel::tracedata
