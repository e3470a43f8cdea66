#include "cli/argument_check.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>

#include "cli/help.h"

namespace stackreel::cli {
namespace {

// Walks arguments as CLI11 does, without taking them.
class ArgumentWalk {
 public:
  ArgumentWalk(const CLI::App& program, const std::vector<std::string>& args)
      : program_(program), args_(args) {}

  Status Run() {
    for (; at_ < args_.size() && args_[at_] != "--"; ++at_) {
      const std::string& arg = args_[at_];
      if (arg.starts_with("--") && arg.size() > 2) {
        TRY(Long(arg));
      } else if (arg.size() > 1 && arg[0] == '-' && arg[1] != '-' &&
                 std::isdigit(static_cast<unsigned char>(arg[1])) == 0) {
        TRY(Short(arg));
      } else if (command_ == nullptr) {
        command_ = FindCommand(arg);
      } else if (command_->get_positionals_at_end()) {
        return {};  // all that follows is somebody else's
      }
    }
    return {};
  }

 private:
  [[nodiscard]] const CLI::App* FindCommand(const std::string& name) const {
    for (const CLI::App* app : program_.get_subcommands([](const CLI::App*) { return true; })) {
      if (app->get_name() == name) return app;
    }
    return nullptr;
  }
  [[nodiscard]] const CLI::Option* Find(const std::string& name) const {
    const CLI::Option* option = command_ == nullptr ? nullptr : command_->get_option_no_throw(name);
    return option != nullptr ? option : program_.get_option_no_throw(name);
  }

  Status Long(const std::string& arg) {
    const size_t equals = arg.find('=');
    const std::string name = arg.substr(0, equals);
    const CLI::Option* option = Find(name);
    if (option == nullptr) return Unknown(name);
    if (option->get_items_expected_max() == 0) return {};  // a flag
    if (equals != std::string::npos)
      return CheckGiven(*option, arg.substr(equals + 1), Named(name));
    return NextValue(*option, name);
  }

  // "-v", "-qv", "-F99", "-F 99".
  Status Short(const std::string& arg) {
    for (size_t i = 1; i < arg.size(); ++i) {
      const std::string name = {'-', arg[i]};
      const CLI::Option* option = Find(name);
      if (option == nullptr) return Unknown(i == 1 ? arg : name);
      if (option->get_items_expected_max() == 0) continue;
      if (i + 1 < arg.size()) return CheckGiven(*option, arg.substr(i + 1), Named(name));
      return NextValue(*option, name);
    }
    return {};
  }

  Status NextValue(const CLI::Option& option, const std::string& name) {
    if (at_ + 1 == args_.size()) return {};  // CLI11 says what is missing
    const bool may_be_alone = option.get_items_expected_min() == 0;
    if (may_be_alone && args_[at_ + 1].starts_with('-')) return {};
    return CheckGiven(option, args_[++at_], Named(name));
  }

  [[nodiscard]] std::string Named(const std::string& text) const {
    return command_ == nullptr ? text : command_->get_name() + ": " + text;
  }

  [[nodiscard]] Status Unknown(const std::string& name) const {
    std::vector<std::string> words;
    for (const CLI::App* app : {command_, &program_}) {
      if (app == nullptr) continue;
      for (const CLI::Option* option : app->get_options()) {
        for (const std::string& word : option->get_snames()) words.push_back("-" + word);
        for (const std::string& word : option->get_lnames()) words.push_back("--" + word);
      }
    }
    // Of single letters none is near another.
    const std::string near = name.size() > 2 ? Nearest(name, words) : "";
    Error error(ErrorKind::kUsage,
                Named(fmt::format("there is no option {}{}", name,
                                  near.empty() ? "" : "; did you mean " + near + "?")));
    error.cure = command_ == nullptr ? "stackreel help" : "stackreel help " + command_->get_name();
    return Fail(std::move(error));
  }

  const CLI::App& program_;
  const std::vector<std::string>& args_;
  const CLI::App* command_ = nullptr;
  size_t at_ = 0;
};

}  // namespace

Status CheckArguments(const CLI::App& program, const std::vector<std::string>& args) {
  return ArgumentWalk(program, args).Run();
}

Status CheckGiven(const CLI::Option& option, const std::string& value, const std::string& where) {
  if (value.empty()) {
    return Fail(Error(ErrorKind::kUsage, where + ": the value is empty")
                    .WithCure("give one, or leave the option out"));
  }
  const char comma = option.get_delimiter();
  if (comma == '\0') return {};
  const bool has_gap = value.starts_with(comma) || value.ends_with(comma) ||
                       value.find({comma, comma}) != std::string::npos;
  if (!has_gap) return {};
  return Fail(ErrorKind::kUsage, fmt::format("{}: the list '{}' has an empty part", where, value));
}

}  // namespace stackreel::cli
