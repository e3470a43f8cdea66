// Help, man pages and shell completion, from the option tree.
#pragma once

#include <string>
#include <vector>

#include "cli/option_tree.h"

namespace stackreel::cli {

// What `stackreel help COMMAND` and `stackreel COMMAND --help` print: examples first.
std::string HelpText(const CommandDoc& doc);
// What `stackreel` and `stackreel help` print.
std::string ProgramHelpText(const std::vector<CommandDoc>& docs);
// A man page in man(7) macros, section 1; `doc` null: the page of the program.
std::string ManPage(const CommandDoc* doc, const std::vector<CommandDoc>& docs);

enum class Shell : uint8_t { kBash, kZsh, kFish };
std::string CompletionScript(Shell shell, const std::vector<CommandDoc>& docs);

// The word of `words` nearest to `text` by edit distance, if it is near (at most a third wrong).
std::string Nearest(const std::string& text, const std::vector<std::string>& words);

}  // namespace stackreel::cli
