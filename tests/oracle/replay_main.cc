// replay FOLDER: replays the scripts of a folder through our classes. See CONTRIBUTING.md,
// "TensorFlow as the oracle".
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "common/base/exit_code.h"
#include "tests/oracle/report.h"
#include "tests/oracle/script.h"

int main(int argc, char** argv) {
  using namespace lockstep;
  if (argc != 2) {
    std::fprintf(stderr, "usage: replay FOLDER\n");
    return static_cast<int>(ExitCode::kUsage);
  }
  const auto scripts = oracle::ReadScripts(argv[1]);
  if (!scripts.ok()) {
    std::fprintf(stderr, "%s\n", std::string(scripts.status().message()).c_str());
    return static_cast<int>(ExitCodeFor(scripts.status()));
  }
  oracle::Report report(&std::cout);
  for (const oracle::Script& script : *scripts) report.Add(script);
  report.Close();
  return report.failed() == 0 ? 0 : 1;
}
