// The Python programs of this folder, run by a Python that has requirements.txt.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::test {

// The command that runs tests/interop/<script>. Fails the test case where LOCKSTEP_PYTHON names no
// Python: `./lockstep test` makes one.
std::vector<std::string> PythonCommand(const std::string& script,
                                       const std::vector<std::string>& arguments);
// Runs tests/interop/<script> and returns what it printed. Fails the test case, showing its output,
// when it does not exit with 0.
std::string RunPython(const std::string& script, const std::vector<std::string>& arguments);
// Of a script that prints JSON.
nlohmann::json RunPythonForJson(const std::string& script,
                                const std::vector<std::string>& arguments);

// The folder that has proto/ in it.
std::string SourceRoot();

}  // namespace lockstep::test
