#include <fmt/format.h>

#include "cli/help.h"

namespace stackreel::cli {

namespace {

// Escapes what roff would read as a request or a hyphen.
std::string Roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += "\\&";
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

void AppendOptions(const std::vector<OptionDoc>& options, std::string& out) {
  for (const OptionDoc& option : options) {
    std::string names;
    for (const std::string& name : option.names) {
      names += (names.empty() ? "" : ", ") + ("\\fB" + Roff(name) + "\\fR");
    }
    if (!option.value.empty()) names += " \\fI" + Roff(option.value) + "\\fR";
    out += ".TP\n" + names + "\n" + Roff(option.description) + "\n";
  }
}

std::string Title(const std::string& page) {
  return fmt::format(".TH \"{}\" \"1\" \"\" \"stackreel {}\" \"Stackreel\"\n", page,
                     STACKREEL_VERSION);
}

std::string ExitStatus() {
  return ".SH EXIT STATUS\n"
         "0 done; 1 failed; 2 usage; 3 a check said no; 4 input damaged, partial answer given;\n"
         "125 measurement could not start; 126, 127 the command is not runnable, not found;\n"
         "otherwise the measured command's own, 128+n for signal n.\n";
}

}  // namespace

std::string ManPage(const CommandDoc* doc, const std::vector<CommandDoc>& docs) {
  if (doc != nullptr) {
    std::string out = Title("stackreel\\-" + doc->name);
    out += ".SH NAME\nstackreel\\-" + doc->name + " \\- " + Roff(doc->summary) + "\n";
    out += ".SH SYNOPSIS\n" + Roff(doc->usage) + "\n.SH EXAMPLES\n.nf\n";
    for (const std::string& example : doc->examples) out += Roff(example) + "\n";
    out += ".fi\n.SH OPTIONS\n";
    for (const PositionalDoc& positional : doc->positionals) {
      out += ".TP\n\\fI" + Roff(positional.name) + "\\fR\n" + Roff(positional.description) + "\n";
    }
    AppendOptions(doc->options, out);
    out += ".SH OPTIONS OF EVERY COMMAND\n";
    AppendOptions(doc->global_options, out);
    return out + ExitStatus() + ".SH SEE ALSO\nstackreel(1)\n";
  }
  std::string out = Title("stackreel");
  out += ".SH NAME\nstackreel \\- profiler and tracer for native Linux programs\n";
  out += ".SH SYNOPSIS\nstackreel COMMAND [options] [arguments]\n.SH COMMANDS\n";
  std::string see_also;
  for (const CommandDoc& command : docs) {
    out += ".TP\n\\fB" + command.name + "\\fR\n" + Roff(command.summary) + "\n";
    see_also += (see_also.empty() ? "" : ",\n") + ("stackreel\\-" + command.name + "(1)");
  }
  out += ".SH OPTIONS\n";
  AppendOptions(docs.front().global_options, out);
  return out + ExitStatus() + ".SH SEE ALSO\n" + see_also + "\n";
}

}  // namespace stackreel::cli
