// The bytes of a chunk put so that they compress well: what is alike stands together.
//
// Most events of a chunk are of three words, of which each differs little from that of the event
// before. So of each three words w[i][0 … 2] the differences
//
//   d = w[i][k] - w[i - 1][k]   (mod 2^32, of the first: w[0][k])
//   z = d << 1 ^ d >> 31        (>> of the signed d: small in either direction is small)
//
// are split into bytes, and these stand in twelve rows, one for each k and byte of z:
//
//   z[0][0]'s lowest byte, z[1][0]'s … | their second bytes … | … | the highest bytes of z[][2]
//
// What is no whole three words follows as it is. Where events have other lengths the rows hold what
// is less alike; that costs size, and nothing else.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace stackreel::tracedata {

// `out` is as long as `bytes`, and none of it lies there.
void SplitIntoColumns(ByteView bytes, std::span<uint8_t> out);
// The inverse.
void JoinColumns(ByteView columns, std::span<uint8_t> out);

}  // namespace stackreel::tracedata
