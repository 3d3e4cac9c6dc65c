#include "compiler/config/Costs.h"
#include "tools/gdnc/Common.h"
#include "tools/gdnc/Options.h"
#include "tools/gdnc/Plan.h"
#include <unistd.h>

using namespace gdnc;

namespace {

struct CompileOptions {
  std::string source, emit, arch = "sm_90a", output;
  std::vector<std::string> settings;
};

const std::map<std::string, Phase> phases = {{"tile", Phase::Tile}, {"sm", Phase::Sm},       {"llvm", Phase::Llvm},
                                             {"ptx", Phase::Ptx},   {"cubin", Phase::Cubin}, {"sass", Phase::Sass}};

// A template that is named rather than given as a file gets the parameters that gdnc build would give it.
void addSchedule(const std::string &name, CompileRequest &request) {
  if (name == planTemplate) {
    for (auto &[cost, value] : readCosts(costsFile().string()))
      request.values.insert({cost, std::to_string(value)});
    return;
  }
  auto number = [&](const char *name, const char *otherwise) {
    auto value = request.values.find(name);
    return value == request.values.end() ? std::string(otherwise) : value->second;
  };
  for (const Schedule &schedule : servedSchedules())
    if (schedule.arch == request.arch && std::to_string(schedule.keyDim) == number("K", "") &&
        std::to_string(schedule.valueDim) == number("V", "") && std::to_string(schedule.split) == number("split", "1"))
      request.values.insert(schedule.values.begin(), schedule.values.end());
}

void runCompile(const CompileOptions &options) {
  CompileRequest request;
  request.arch = options.arch;
  for (const std::string &setting : options.settings) {
    size_t equals = setting.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw Failure(UsageError, "--set: expected NAME=VALUE, got \"{}\"", setting);
    request.values[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  bool named = options.source.find_first_of("./") == std::string::npos;
  request.templateFile = named ? templateFile(options.source).string() : options.source;
  if (named)
    addSchedule(options.source, request);
  readFile(request.templateFile); // says what is wrong with the path
  if (options.output.empty() && options.emit == "cubin" && isatty(STDOUT_FILENO))
    throw Failure(UsageError, "--emit=cubin: expected -o or a pipe, got a terminal");
  CompileResult result = compile(request, phases.at(options.emit));
  if (!result.ok)
    throw Failure(result.environmentError ? EnvironmentError : CompileError, "{}", result.diagnostics);
  if (options.output.empty())
    fwrite(result.text.data(), 1, result.text.size(), stdout);
  else
    writeFile(options.output, result.text);
}

} // namespace

void gdnc::addCompile(CLI::App &app) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App *command = app.add_subcommand("compile", "show one kernel at any phase of its compilation");
  command
      ->add_option("template", options->source,
                   "a template file; or a template's name, forward or plan: its parameters then come from the tables, "
                   "as in gdnc build")
      ->required();
  std::vector<std::string> names{"tile", "sm", "llvm", "ptx", "cubin", "sass"};
  command->add_option("--emit", options->emit, "phase: tile, sm, llvm, ptx, cubin or sass")
      ->required()
      ->check(oneOf(names));
  command->add_option("--set", options->settings, "template parameters, NAME=VALUE")->delimiter(',');
  command->add_option("--arch", options->arch, "target (default: sm_90a)");
  command->add_option("-o,--output", options->output, "file to write (default: standard output)");
  command->callback([options] { runCompile(*options); });
}
