// A row's call tree as lines of text, in the form perf's users know.
#pragma once

#include <cstdint>
#include <string>

#include "profile/call_tree.h"
#include "profile/profile.h"

namespace stackreel::views {

struct CallGraphTextOptions {
  uint64_t whole = 0;           // weight that is 100 %
  uint64_t min_weight = 0;      // the limit the tree was grown with
  size_t width = 0;             // columns; 0: not cut
  bool row_is_function = true;  // a tree of the row's function only says nothing
};
// Appends
//             |
//             ---main
//                work
//                |
//                |--60.00%--left
//                |          leaf
//                |
//                 --40.00%--right
// and nothing for an empty tree. A node whose only child has all its weight but what is below the
// limit goes on in its column, so the text gets wider only where calls part; "[...]" is what is
// below the limit, where that is not below it in all. Narrow terminals get narrower branches.
void AppendCallGraph(std::string& out, const profile::Profile& profile,
                     const profile::CallTree& tree, const CallGraphTextOptions& options);

}  // namespace stackreel::views
