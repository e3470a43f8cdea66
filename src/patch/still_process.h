// Test code: a process that consists of memory.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "patch/execute.h"
#include "patch/site.h"

namespace stackreel::patch {

// A process without threads.
class StillProcess : public CodeMemory,
                     public CoreSync,
                     public TrapTable,
                     public Threads,
                     public Journal {
 public:
  explicit StillProcess(const std::vector<Site>& sites) {
    for (const Site& site : sites) Put(site, site.original);
  }
  void Put(const Site& site, const SiteBytes& bytes) {
    for (size_t i = 0; i < bytes.length; ++i) bytes_[site.begin().value + i] = bytes.bytes[i];
  }
  void Unmap(const Site& site) {
    for (uint64_t at = site.begin().value; at < site.end().value; ++at) bytes_.erase(at);
  }
  [[nodiscard]] MemoryForm FormOf(const Site& site) {
    std::vector<uint8_t> memory(site.original.length);
    return Read(site.begin(), memory) ? Assess(site, memory) : MemoryForm::kForeign;
  }
  [[nodiscard]] Process process() { return {this, this, this, this, this}; }

  Status Read(Avma at, std::span<uint8_t> out) override {
    for (size_t i = 0; i < out.size(); ++i) {
      const auto byte = bytes_.find(at.value + i);
      if (byte == bytes_.end()) return Fail(ErrorKind::kNotFound, "not mapped");
      out[i] = byte->second;
    }
    return {};
  }
  Status Write(Avma at, ByteView bytes) override {
    ++writes;
    if (at == spoiled) return {};
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (!bytes_.contains(at.value + i)) return Fail(ErrorKind::kNotFound, "not mapped");
      bytes_[at.value + i] = bytes[i];
    }
    return {};
  }
  Status Sync() override { return ++syncs, Status(); }
  Status Publish(std::span<const TrapEntry> entries) override {
    published.assign(entries.begin(), entries.end());
    return {};
  }
  Result<std::vector<size_t>> ClearOut(std::span<const Site* const> sites, Form) override {
    return ++clearings,
           held_up ? std::vector<size_t>(sites.empty() ? 0 : 1) : std::vector<size_t>();
  }
  Status Stop() override { return {}; }
  Status Resume() override { return {}; }
  Status Keep(std::span<const Site* const>) override {
    return kept ? Status() : Fail(ErrorKind::kIo, "cannot be kept");
  }

  int writes = 0;
  int syncs = 0;
  int clearings = 0;
  bool kept = true;
  bool held_up = false;  // the first site cannot be cleared
  Avma spoiled;          // what is written here is lost
  std::vector<TrapEntry> published;

 private:
  std::map<uint64_t, uint8_t> bytes_;
};

}  // namespace stackreel::patch
