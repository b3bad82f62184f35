// What ptxas says of the kernels that nvcc has compiled.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "absl/strings/str_format.h"
#include "tests/support/cuda/emulated_kernel.h"
#include "worker/device/cuda/driver.h"
#include "worker/ops/cuda/block_threads.cuh"

namespace lockstep::worker::cuda {
namespace {

// 65,536 registers of a multiprocessor hold half of its threads that take so many: those of which
// each has several loads under way.
constexpr int kMostRegisters = 96;

struct Compiled {
  int registers = -1;
  int spilled = -1;  // bytes stored
  int shared = 0;    // bytes of a block
};

// By "<kernel> for <architecture>".
std::map<std::string, Compiled> ReadReport() {
  std::ifstream report("worker/ops/cuda/kernels_assembly.ptxas");
  REQUIRE(report.is_open());
  const std::regex entry("Compiling entry function '(\\w+)' for '(\\w+)'");
  const std::regex spills("(\\d+) bytes spill stores");
  const std::regex registers("Used (\\d+) registers");
  const std::regex shared("(\\d+) bytes smem");
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
    if (std::regex_search(line, match, shared)) compiled[current].shared = std::stoi(match.str(1));
  }
  return compiled;
}

// Percent of a multiprocessor's 64 warps that have work: as CUDA's occupancy calculator has it for
// compute capability 8.0 and 9.0, registers given to warps in pieces of 256. Shared memory of these
// kernels never decides.
int OccupancyOf(const Compiled& kernel, int threads) {
  constexpr int kWarps = 64;
  constexpr int kBlocks = 32;
  constexpr int kRegisters = 65536;
  const int warps_of_block = threads / 32;
  const int registers_of_warp = (kernel.registers * 32 + 255) / 256 * 256;
  const int blocks =
      std::min({kBlocks, kWarps / warps_of_block, kRegisters / registers_of_warp / warps_of_block});
  return blocks * warps_of_block * 100 / kWarps;
}

TEST_CASE("every kernel is compiled for each architecture, without spills") {
  const std::map<std::string, Compiled> compiled = ReadReport();
  std::set<std::string> wanted;
  for (const std::string& kernel : test::EmulatedKernelNames()) {
    for (const char* architecture : {"sm_80", "sm_90"}) {
      wanted.insert(kernel + " for " + architecture);
    }
  }
  CHECK(wanted.size() == compiled.size());
  for (const std::string& name : wanted) {
    INFO(name);
    REQUIRE(compiled.contains(name));
    CHECK(compiled.at(name).spilled == 0);
    CHECK(compiled.at(name).registers > 0);
    CHECK(compiled.at(name).registers <= kMostRegisters);
  }
}

// Those of another version of nvcc take other registers.
constexpr int kVersionOfTable = 13000;

TEST_CASE("docs/gpu_kernels.md has a line for each kernel, with what nvcc made of it") {
  std::ifstream file("docs/gpu_kernels.md");
  REQUIRE(file.is_open());
  const std::string table{std::istreambuf_iterator<char>(file), {}};
  const std::map<std::string, Compiled> compiled = ReadReport();
  std::string wanted;
  size_t rows = 0;
  for (const std::string& name : test::EmulatedKernelNames()) {
    const bool has_barriers = test::FindEmulatedKernel(name)->has_barriers;
    const int threads = has_barriers ? kRowThreads : kThreadsPerBlock;
    const Compiled& on_80 = compiled.at(name + " for sm_80");
    const Compiled& on_90 = compiled.at(name + " for sm_90");
    const std::string row = absl::StrFormat(
        "| `%s` | %d | %d | %d | %d | %d %% | %d %% |\n", name, threads, on_80.registers,
        on_90.registers, on_90.shared, OccupancyOf(on_80, threads), OccupancyOf(on_90, threads));
    wanted += row;
    ++rows;
    const std::string expected = ToolkitVersion() / 10 == kVersionOfTable / 10
                                     ? row
                                     : absl::StrFormat("| `%s` | %d | ", name, threads);
    CHECK_THAT(table, Catch::Contains(expected));
  }
  INFO(wanted);
  size_t listed = 0;
  for (size_t at = 0; (at = table.find("| `lockstep_", at)) != std::string::npos; ++at) ++listed;
  CHECK(listed == rows);
}

}  // namespace
}  // namespace lockstep::worker::cuda
