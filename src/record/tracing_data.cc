#include "record/tracing_data.h"

#include <unistd.h>

#include <map>
#include <set>

#include "base/byte_writer.h"
#include "os/file.h"

namespace stackreel::record {

namespace {

// "sched:sched_switch:k" → system → names. Only events of that type are asked about.
std::map<std::string, std::set<std::string>> TracepointsOf(
    const std::vector<perfdata::Event>& events) {
  std::map<std::string, std::set<std::string>> systems;
  for (const perfdata::Event& event : events) {
    if (event.attr.type != perfdata::kTypeTracepoint) continue;
    const size_t colon = event.name.find(':');
    if (colon == std::string::npos) continue;
    const size_t end = event.name.find(':', colon + 1);
    systems[event.name.substr(0, colon)].insert(
        event.name.substr(colon + 1, end == std::string::npos ? end : end - colon - 1));
  }
  return systems;
}

void PutText(ByteWriter& out, std::string_view text) {
  out.Text(text);
  out.U8(0);
}

Status PutSizedFile(ByteWriter& out, const std::string& path) {
  TRY_ASSIGN(const std::string text, os::ReadTextFile(path, size_t{16} << 20));
  out.U64(text.size());
  out.Text(text);
  return {};
}

}  // namespace

Result<std::vector<uint8_t>> ReadTracingData(const std::string& tracefs,
                                             const std::vector<perfdata::Event>& events) {
  const auto systems = TracepointsOf(events);
  if (systems.empty()) return std::vector<uint8_t>();
  ByteWriter out;
  out.Bytes(std::vector<uint8_t>{0x17, 0x08, 0x44});
  out.Text("tracing");
  PutText(out, "0.6");
  out.U8(kNativeEndian == Endian::kBig ? 1 : 0);
  out.U8(sizeof(long));
  out.U32(static_cast<uint32_t>(sysconf(_SC_PAGESIZE)));
  for (const char* header : {"header_page", "header_event"}) {
    PutText(out, header);
    TRY(PutSizedFile(out, tracefs + "/events/" + header));
  }
  out.U32(0);
  out.U32(static_cast<uint32_t>(systems.size()));
  for (const auto& [system, names] : systems) {
    PutText(out, system);
    out.U32(static_cast<uint32_t>(names.size()));
    for (const std::string& name : names) {
      TRY(PutSizedFile(out, tracefs + "/events/" + system + "/" + name + "/format"));
    }
  }
  out.U32(0);
  // Not readable by everyone; the formats are good without.
  const std::string printk = os::ReadTextFile(tracefs + "/printk_formats").value_or("");
  out.U32(static_cast<uint32_t>(printk.size()));
  out.Text(printk);
  out.U64(0);
  return out.Take();
}

}  // namespace stackreel::record
