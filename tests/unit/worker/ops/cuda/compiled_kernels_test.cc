// What ptxas says of the kernels that nvcc has compiled.
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "tests/support/cuda/emulated_kernel.h"

namespace lockstep::worker::cuda {
namespace {

// 65,536 registers of a multiprocessor hold 6 blocks of 256 threads that take so many.
constexpr int kMostRegisters = 40;
// And 16 blocks of 64 threads, which kernels with barriers have.
constexpr int kMostRegistersWithBarriers = 64;

struct Compiled {
  int registers = -1;
  int spilled = -1;  // bytes stored
};

// By "<kernel> for <architecture>".
std::map<std::string, Compiled> ReadReport() {
  std::ifstream report("worker/ops/cuda/kernels_assembly.ptxas");
  REQUIRE(report.is_open());
  const std::regex entry("Compiling entry function '(\\w+)' for '(\\w+)'");
  const std::regex spills("(\\d+) bytes spill stores");
  const std::regex registers("Used (\\d+) registers");
  std::map<std::string, Compiled> compiled;
  std::string current;
  for (std::string line; std::getline(report, line);) {
    std::smatch match;
    if (std::regex_search(line, match, entry)) {
      current = match.str(1) + " for " + match.str(2);
      compiled[current] = {};
    }
    if (std::regex_search(line, match, spills)) compiled[current].spilled = std::stoi(match.str(1));
    if (std::regex_search(line, match, registers)) {
      compiled[current].registers = std::stoi(match.str(1));
    }
  }
  return compiled;
}

TEST_CASE("every kernel is compiled for each architecture, without spills") {
  const std::map<std::string, Compiled> compiled = ReadReport();
  std::map<std::string, std::string> wanted;  // the kernel of each entry
  for (const std::string& kernel : test::EmulatedKernelNames()) {
    for (const char* architecture : {"sm_80", "sm_90"}) {
      wanted[kernel + " for " + architecture] = kernel;
    }
  }
  CHECK(wanted.size() == compiled.size());
  for (const auto& [name, kernel] : wanted) {
    INFO(name);
    REQUIRE(compiled.contains(name));
    CHECK(compiled.at(name).spilled == 0);
    CHECK(compiled.at(name).registers > 0);
    const bool has_barriers = test::FindEmulatedKernel(kernel)->has_barriers;
    CHECK(compiled.at(name).registers <=
          (has_barriers ? kMostRegistersWithBarriers : kMostRegisters));
  }
}

}  // namespace
}  // namespace lockstep::worker::cuda
