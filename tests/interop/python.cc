#include "tests/interop/python.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "absl/time/time.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);

}  // namespace

std::vector<std::string> PythonCommand(const std::string& script,
                                       const std::vector<std::string>& arguments) {
  const char* python = std::getenv("LOCKSTEP_PYTHON");
  if (python == nullptr) {
    FAIL(
        "LOCKSTEP_PYTHON is not set, so there is no Python that has "
        "tests/interop/requirements.txt. "
        "Remedy: run ./lockstep test, which makes one");
  }
  std::vector<std::string> command = {python, Binary("tests/interop/" + script)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

std::string RunPython(const std::string& script, const std::vector<std::string>& arguments) {
  const Ended ended =
      RunToEnd(PythonCommand(script, arguments), kPatience, {"PYTHONDONTWRITEBYTECODE=1"});
  INFO(script << " printed\n" << ended.output);
  REQUIRE(ended.exit_code == 0);
  return ended.output;
}

nlohmann::json RunPythonForJson(const std::string& script,
                                const std::vector<std::string>& arguments) {
  const std::string output = RunPython(script, arguments);
  nlohmann::json json = nlohmann::json::parse(output, nullptr, false);
  if (json.is_discarded()) FAIL(script << " printed " << output);
  return json;
}

std::string SourceRoot() { return Binary("."); }

}  // namespace lockstep::test
