#include "views/flame_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profile/folded_profile.h"

namespace stackreel::views {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Folded, LinesAreSortedByPath) {
  profile::Profile profile;
  AddFolded(profile, "b;main;z 1\nb;main;a;x 2\nb;main;z 3\na;main 4\na;[kernel]!0x1 5\n");
  EXPECT_EQ(Folded(profile, {}), "a;[kernel] 5\na;main 4\nb;main;a;x 2\nb;main;z 4\n");
}

TEST(Folded, NamesCannotBreakLines) {
  profile::Profile profile;
  profile::Frame frame;
  frame.function = profile.Intern("a;b\nc 1");
  profile::ProfileSample sample;
  sample.comm = profile.Intern("co\tmm");
  sample.weight = 3;
  sample.stack = profile.Push(profile::kEmptyStack, profile.AddFrame(frame));
  profile.AddSample(sample);
  EXPECT_EQ(Folded(profile, {}), "co mm;a:b c 1 3\n");
}

TEST(FlameGraph, NamesAreEscaped) {
  profile::Profile profile;
  profile::Frame frame;
  frame.function = profile.Intern("operator<(\"x\" & 'y')\x01\xff]]></title><script>");
  profile::ProfileSample sample;
  sample.weight = 3;
  sample.stack = profile.Push(profile::kEmptyStack, profile.AddFrame(frame));
  profile.AddSample(sample);
  const std::string svg = FlameGraphSvg(profile, {});
  EXPECT_THAT(svg, HasSubstr("operator&lt;(&quot;x&quot; &amp; &#39;y&#39;)\xEF\xBF\xBD\xEF\xBF\xBD"
                             "]]&gt;&lt;/title&gt;&lt;script&gt;\n"));
  EXPECT_THAT(svg, Not(HasSubstr("</title><script>")));
  EXPECT_THAT(svg, Not(HasSubstr("\x01")));
}

TEST(FlameGraph, NarrowBoxesAreLeftOutAndTold) {
  profile::Profile profile;
  AddFolded(profile, "a;main;wide 990\na;main;narrow 10\n");
  FlameGraphOptions options;
  options.min_percent = 2;
  const std::string svg = FlameGraphSvg(profile, options);
  EXPECT_THAT(svg, HasSubstr(">wide\n"));
  EXPECT_THAT(svg, Not(HasSubstr(">narrow\n")));
  EXPECT_THAT(svg,
              HasSubstr("Boxes narrower than 2% are left out; 1.00% of the weight ends in such"));
}

}  // namespace
}  // namespace stackreel::views
