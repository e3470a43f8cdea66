// Verification kind (b): the bytes of OUT, whatever they are said to be.
//
// A value counts where it stands
//  * in eight bytes that are one number, in either byte order;
//  * in eight bytes at any offset, in either order, of what is no number: texts, build-ids, data,
//    padding;
//  * in eight bytes at any offset of several numbers, in the byte order of the file, if none of
//    those is an address, a time or the number of a process or file, and nothing else is among
//    them: part of a text and part of a number are no value, nor are two numbers below 256 and
//    65,536;
//  * in hex, in what is no number: in a run of 8 to 16 digits, of any length behind 0x, or in the
//    last 16 of a longer run.
// A value is an address of a page that was mapped, from 4 GB on (OriginalValues::HasAddress), or
// what a mapping moved by; in what is no number, the number of such a page too (in hex: behind 0x).
// Below 4 GB, where every count and length looks like an address, it is an address in hex behind 0x
// or of 16 digits, and, of machines of 32 bits, exactly the start of a mapping: in a number of 64
// bits that is no address, in four bytes in the file's order at any offset of what is no number, or
// in hex.
//
// Times, whole or in part, and parts of numbers of processes and files do not count: nanoseconds
// since the start of a machine pass through its addresses (39 hours are 0x7f…), and so do two
// thread numbers side by side. That times are those of IN is seen elsewhere (kinds b and f,
// verify_out.cc). The parts of new addresses and of pseudonyms are random, and beside bytes of all
// ones they look like a kernel's.
//
// Numbers that are no addresses hit by chance now and then: of S bytes mapped, a count of 64 bits
// that is just then the size of an address (10^13 to 10^14) with S / 2^47, two or more small ones
// side by side with S / 2^48 for each different pair. Such hits are told from leaks by what IN has
// in the same fields (chance_hits.h). What is left of false alarms: what is random (build-ids) hits
// with S / 2^64 for each offset; 16 bytes of 1,000 build-ids and 1 GB mapped: 1 in 10^6. A move,
// exact to the bit, hits with the number of mappings / 2^36. Exact starts of 32 bits hit with
// (mappings) / 2^32 for each byte of text: one recording in 1,000 with 100 mappings and 40 KB of
// text.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "anonymize/field_spans.h"
#include "anonymize/originals.h"
#include "base/bytes.h"

namespace stackreel::anonymize {

// Where and what.
struct ByteHit {
  size_t offset = 0;                 // in the bytes searched
  const FieldSpan* field = nullptr;  // that it begins in; null: none
  std::string value;
  bool in_numbers = false;  // eight bytes that are one number, or parts of several
};

// Searches `bytes`, of which `fields` says what they are; what no field claims is no number.
void SearchBytes(ByteView bytes, std::span<const FieldSpan> fields, Endian endian,
                 const OriginalValues& originals, const std::function<void(const ByteHit&)>& found);

}  // namespace stackreel::anonymize
