#include "tracedata/control_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stackreel::tracedata {
namespace {

TEST(ControlMessage, SaysARequestAsItWas) {
  const ControlRequest request = {.kind = ControlRequest::Kind::kChange,
                                  .patterns = {{true, "parse_*"}, {false, ""}}};
  const auto read = DecodeRequest(Encode(request));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, request);
}

TEST(ControlMessage, SaysFiltersAsTheyWere) {
  const ControlRequest request = {
      .kind = ControlRequest::Kind::kFilter,
      .filters = {{FilterOption::Kind::kBegin, "parse_*"}, {FilterOption::Kind::kTracing, "off"}}};
  std::vector<uint8_t> bytes = Encode(request);
  const auto read = DecodeRequest(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, request);
  // The kind of the last, before a text of three letters.
  bytes[bytes.size() - 3 - 4 - 1] = kFilterKinds + 1;
  EXPECT_FALSE(DecodeRequest(bytes));
}

TEST(ControlMessage, SaysAnAnswerAsItWas) {
  ControlAnswer answer;
  answer.error = Error(ErrorKind::kNotFound, "nothing").WithCure("something");
  answer.Add("refused", "too short", 12);
  const auto read = DecodeAnswer(Encode(answer));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_TRUE(read->error);
  EXPECT_EQ(read->error->kind, ErrorKind::kNotFound);
  EXPECT_EQ(read->error->message, "nothing");
  EXPECT_EQ(read->error->cure, "something");
  EXPECT_EQ(read->counts, answer.counts);
  EXPECT_EQ(read->Find("refused", "too short"), 12U);
  EXPECT_EQ(read->Find("refused", "too long"), 0U);
}

TEST(ControlMessage, RefusesWhatIsCutShortOrTooLong) {
  std::vector<uint8_t> bytes = Encode(
      ControlRequest{.kind = ControlRequest::Kind::kChange, .patterns = {{true, "parse_*"}}});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeRequest(ByteView(bytes).first(size))) << size;
  }
  EXPECT_FALSE(DecodeAnswer(bytes));
  bytes.push_back(0);
  EXPECT_FALSE(DecodeRequest(bytes));
}

TEST(ControlMessage, TellsOfAnotherVersion) {
  std::vector<uint8_t> bytes = Encode(ControlRequest());
  bytes[4] = 9;
  const auto read = DecodeRequest(bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace stackreel::tracedata
