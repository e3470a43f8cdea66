// Sites as bytes: what a tracer leaves in memory that it shares with the traced process before it
// stores anything, so that whoever comes after it can unpatch (SiteSet::Recover).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "patch/site.h"

namespace stackreel::patch {

// Little-endian: u32 magic "SRPJ", u16 version 1, u16 bytes a site, u32 count, then the sites:
// u64 address, stub, out_of_line; u32 function; u8 kind, before, length, entries of the map;
// original and patched bytes; the map's pairs.
[[nodiscard]] uint64_t EncodedSize(size_t sites);
[[nodiscard]] std::vector<uint8_t> EncodeSites(std::span<const Site* const> sites);

// The traced process can have written to these bytes, so nothing is believed: every site passes
// CheckSite, begins after the one before has ended. Bytes behind the last are ignored. (That memory
// holds one of the forms of a site is looked at when it is unpatched.)
[[nodiscard]] Result<std::vector<Site>> DecodeSites(ByteView bytes);

}  // namespace stackreel::patch
