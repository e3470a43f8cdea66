
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/doctor.h"
#include "cli/print.h"

namespace stackreel::cli {

namespace {

const char* StateName(CheckState state) {
  switch (state) {
    case CheckState::kOk:
      return "ok";
    case CheckState::kLimited:
      return "limited";
    case CheckState::kMissing:
      return "missing";
  }
  return "";
}

class DoctorCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "doctor"; }
  [[nodiscard]] const char* summary() const override {
    return "Tell what this machine allows, and how to get the rest";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"stackreel doctor          # every check, with the smallest cure",
            "stackreel doctor --json   # the same for a program"};
  }
  void AddOptions(CLI::App& app) override {
    app.add_flag("--json", json_, "Print one JSON object, schema stackreel.doctor/1");
  }
  Result<int> Run(const GlobalOptions& global) override {
    const std::vector<Check> checks = RunChecks();
    if (json_) {
      PrintJson(checks);
    } else {
      PrintText(checks, global);
    }
    for (const Check& check : checks) {
      if (check.essential && check.state == CheckState::kMissing) return kExitCheckSaidNo;
    }
    return kExitDone;
  }

 private:
  static void PrintText(const std::vector<Check>& checks, const GlobalOptions& global) {
    const bool color = UseColor(global);
    for (const Check& check : checks) {
      const char* code = check.state == CheckState::kOk        ? "\x1b[32m"
                         : check.state == CheckState::kLimited ? "\x1b[33m"
                                                               : "\x1b[31m";
      Print(stdout, "{}{:<8}{} {:<28} {}\n", color ? code : "", StateName(check.state),
            color ? "\x1b[0m" : "", check.name, check.found);
      if (check.state == CheckState::kOk) continue;
      if (!check.effect.empty()) Print(stdout, "{:9}{:<28}   {}\n", "", "", check.effect);
      for (const std::string& cure : check.cures)
        Print(stdout, "{:9}{:<28}   try: {}\n", "", "", cure);
    }
  }

  static void PrintJson(const std::vector<Check>& checks) {
    nlohmann::ordered_json out = {{"schema", "stackreel.doctor/1"}, {"version", STACKREEL_VERSION}};
    out["checks"] = nlohmann::ordered_json::array();
    for (const Check& check : checks) {
      out["checks"].push_back({{"name", check.name},
                               {"state", StateName(check.state)},
                               {"found", check.found},
                               {"effect", check.effect},
                               {"cures", check.cures}});
    }
    Print(stdout, "{}\n",
          out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }

  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDoctorCommand() { return std::make_unique<DoctorCommand>(); }

}  // namespace stackreel::cli
