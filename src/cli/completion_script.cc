#include <fmt/format.h>

#include <algorithm>

#include "cli/help.h"

namespace stackreel::cli {

namespace {

std::string CommandWords(const std::vector<CommandDoc>& docs) {
  std::string out;
  for (const CommandDoc& doc : docs) out += doc.name + " ";
  return out + "help";
}

std::vector<OptionDoc> OptionsOf(const CommandDoc& doc) {
  std::vector<OptionDoc> options = doc.options;
  options.insert(options.end(), doc.global_options.begin(), doc.global_options.end());
  return options;
}

std::string Bash(const std::vector<CommandDoc>& docs) {
  std::string out =
      "_stackreel() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local command=${COMP_WORDS[1]} options= choices=\n"
      "  [ \"$previous\" = \"=\" ] && previous=${COMP_WORDS[COMP_CWORD-2]}\n"
      "  [ \"$current\" = \"=\" ] && { previous=${COMP_WORDS[COMP_CWORD-1]}; current=; }\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"" +
      CommandWords(docs) +
      "\" -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  case $command in\n";
  for (const CommandDoc& doc : docs) {
    std::string words;
    std::string cases;
    for (const OptionDoc& option : OptionsOf(doc)) {
      for (const std::string& name : option.names) {
        words += (words.empty() ? "" : " ") + name;
        if (option.choices.empty()) continue;
        cases +=
            fmt::format("        {}) choices=\"{}\" ;;\n", name, fmt::join(option.choices, " "));
      }
    }
    out += "    " + doc.name + ")\n      options=\"" + words + "\"\n";
    if (!cases.empty()) out += "      case $previous in\n" + cases + "      esac ;;\n";
    if (cases.empty()) out += "      ;;\n";
  }
  out += "    help) options=\"" + CommandWords(docs) +
         "\" ;;\n"
         "  esac\n"
         "  if [ -n \"$choices\" ]; then\n"
         "    COMPREPLY=($(compgen -W \"$choices\" -- \"$current\"))\n"
         "  elif [ \"$command\" = help ] || [[ $current == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _stackreel stackreel\n";
  return out;
}

// Quotes for a zsh _arguments specification inside single quotes.
std::string ZshText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':') {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string Zsh(const std::vector<CommandDoc>& docs) {
  std::string out =
      "#compdef stackreel\n"
      "_stackreel() {\n"
      "  if (( CURRENT == 2 )); then\n"
      "    local -a commands=(\n";
  for (const CommandDoc& doc : docs) {
    out += "      '" + doc.name + ":" + ZshText(doc.summary) + "'\n";
  }
  out +=
      "      'help:Show the help of a command'\n"
      "    )\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words; (( CURRENT-- ))\n"
      "  case $command in\n";
  for (const CommandDoc& doc : docs) {
    out += "    " + doc.name + ") _arguments \\\n";
    for (const OptionDoc& option : OptionsOf(doc)) {
      for (const std::string& name : option.names) {
        const bool is_long = name.starts_with("--");
        std::string spec = name + (option.value.empty() ? "" : (is_long ? "=" : "+"));
        spec += "[" + ZshText(option.description) + "]";
        if (!option.choices.empty()) {
          spec += fmt::format(":value:({})", fmt::join(option.choices, " "));
        } else if (option.value == "FILE" || option.value == "DIR") {
          spec += ":file:_files";
        } else if (!option.value.empty()) {
          spec += ":value: ";
        }
        out += "      '" + spec + "' \\\n";
      }
    }
    out += "      '*:file:_files' ;;\n";
  }
  return out + "    help) compadd " + CommandWords(docs) + " ;;\n  esac\n}\n_stackreel \"$@\"\n";
}

std::string FishText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string Fish(const std::vector<CommandDoc>& docs) {
  std::string out;
  for (const CommandDoc& doc : docs) {
    out += fmt::format("complete -c stackreel -n __fish_use_subcommand -f -a {} -d '{}'\n",
                       doc.name, FishText(doc.summary));
  }
  out +=
      "complete -c stackreel -n __fish_use_subcommand -f -a help -d 'Show the help of a command'\n";
  for (const CommandDoc& doc : docs) {
    for (const OptionDoc& option : OptionsOf(doc)) {
      out += fmt::format("complete -c stackreel -n '__fish_seen_subcommand_from {}'", doc.name);
      for (const std::string& name : option.names) {
        const bool is_long = name.starts_with("--");
        out += (is_long ? " -l " : " -s ") + name.substr(is_long ? 2 : 1);
      }
      if (!option.value.empty()) out += " -r";
      if (!option.choices.empty()) {
        out += fmt::format(" -f -a '{}'", fmt::join(option.choices, " "));
      }
      out += " -d '" + FishText(option.description) + "'\n";
    }
  }
  return out + "complete -c stackreel -n '__fish_seen_subcommand_from help' -f -a '" +
         CommandWords(docs) + "'\n";
}

}  // namespace

std::string CompletionScript(Shell shell, const std::vector<CommandDoc>& docs) {
  switch (shell) {
    case Shell::kBash:
      return Bash(docs);
    case Shell::kZsh:
      return Zsh(docs);
    case Shell::kFish:
      return Fish(docs);
  }
  return "";
}

}  // namespace stackreel::cli
