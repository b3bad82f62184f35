#include "tests/bench/built.h"

#include <filesystem>

namespace lockstep::bench {

// This program is <bin>/tests/bench/bench.
std::string BuiltProgram(const std::string& name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path().parent_path().parent_path() / name).string();
}

}  // namespace lockstep::bench
