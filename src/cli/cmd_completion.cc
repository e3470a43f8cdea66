
#include <cstdio>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/print.h"
#include "cli/program.h"

namespace stackreel::cli {

namespace {

class CompletionCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "completion"; }
  [[nodiscard]] const char* summary() const override { return "Print a shell's completion script"; }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"source <(stackreel completion bash)      # this shell only",
            "stackreel completion zsh > \"${fpath[1]}/_stackreel\"",
            "stackreel completion fish > ~/.config/fish/completions/stackreel.fish"};
  }
  void AddOptions(CLI::App& app) override {
    app.add_option("SHELL", shell_, "The shell: bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  }
  Result<int> Run(const GlobalOptions& /*global*/) override {
    const Shell shell = shell_ == "zsh"    ? Shell::kZsh
                        : shell_ == "fish" ? Shell::kFish
                                           : Shell::kBash;
    Print(stdout, "{}", CompletionScript(shell, Program().Docs()));
    return kExitDone;
  }

 private:
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> MakeCompletionCommand() { return std::make_unique<CompletionCommand>(); }

}  // namespace stackreel::cli
