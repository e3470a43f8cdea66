// Verification kind (e): what of a text a level hides, by the text's class.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "anonymize/level.h"
#include "anonymize/public_names.h"
#include "perfdata/schema.h"

namespace stackreel::anonymize {

struct PrivacyRules {
  Level level = Level::kAddresses;
  PublicNames publics;
  std::map<uint32_t, std::string> pmu_names;  // of IN, which stay
};

// The parts of a text that may not be the same in OUT as in IN: folders, names of files, words. Of
// what is public (public_names.h) there are none, and at kAddresses none of anything. A class whose
// texts are looked for in all of OUT instead (command lines, the host's name) has none either.
std::vector<std::string_view> PrivateParts(perfdata::Sensitivity sensitivity, std::string_view text,
                                           const PrivacyRules& rules);

// Of a module's path, as PrivateParts has it: the name of its file, or what it is called in
// brackets; "" if that may stay.
std::string_view PrivateModuleName(std::string_view path, const PrivacyRules& rules);

// "f_" and ten letters: what a function of a module that is not public is called.
bool IsPseudonymOfFunction(std::string_view name);

}  // namespace stackreel::anonymize
