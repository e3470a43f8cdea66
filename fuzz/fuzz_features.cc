// Any feature section: decode → encode → decode gives the same bytes, in both byte orders, and what
// it says can be shown.
//
// Input: u8 (bit 0: big-endian), u8 feature, u16 number of CPUs; then the section.
#include <cstdint>
#include <vector>

#include "base/byte_reader.h"
#include "base/check.h"
#include "perfdata/feature_layout.h"
#include "perfdata/features.h"

namespace {

using namespace stackreel;            // NOLINT(google-build-using-namespace)
using namespace stackreel::perfdata;  // NOLINT(google-build-using-namespace)

template <typename Body>
void TryAs(ByteView bytes, Endian endian, uint32_t nr_cpus) {
  const auto body = DecodeFeatureAs<Body>(bytes, endian, nr_cpus);
  if (!body) return;
  const std::vector<uint8_t> encoded = EncodeFeature(*body, endian);
  const auto again = DecodeFeatureAs<Body>(encoded, endian, nr_cpus);
  CHECK(again.has_value());
  const Endian other = endian == Endian::kLittle ? Endian::kBig : Endian::kLittle;
  const std::vector<uint8_t> swapped = EncodeFeature(*again, other);
  const auto back = DecodeFeatureAs<Body>(swapped, other, nr_cpus);
  CHECK(back.has_value());
  CHECK(EncodeFeature(*back, endian) == encoded);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader in(ByteView(data, size));
  const Endian endian = (in.U8() & 1) != 0 ? Endian::kBig : Endian::kLittle;
  const uint32_t feature = in.U8();
  const uint32_t nr_cpus = in.U16();
  if (!in.ok()) return 0;
  const std::vector<uint8_t> bytes(in.Rest().begin(), in.Rest().end());
  WithFeatureBody(feature, [&]<typename Body>() { TryAs<Body>(bytes, endian, nr_cpus); });
  Features features;
  features.nr_cpus.emplace(nr_cpus, nr_cpus);
  Counters counters;
  DecodeFeature(feature, bytes, endian, features, counters);
  CHECK(!DescribeFeatures(features, endian).empty());
  return 0;
}
