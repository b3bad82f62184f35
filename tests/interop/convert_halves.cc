// convert_halves TYPE: reads float32 numbers from standard input; writes each rounded to TYPE
// (float16 or bfloat16), then all 65,536 patterns of TYPE as float32: for another implementation to
// compare.
#include <cstdio>
#include <string>
#include <vector>

#include "common/base/exit_code.h"
#include "common/tensor/half_copy.h"

namespace {

void Convert(lockstep::DType type) {
  std::vector<float> numbers;
  for (float number = 0; std::fread(&number, sizeof(number), 1, stdin) == 1;) {
    numbers.push_back(number);
  }
  std::vector<uint16_t> narrow(numbers.size());
  lockstep::Narrow(numbers, type, narrow.data());
  std::vector<uint16_t> patterns(0x10000);
  for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<uint16_t>(i);
  std::vector<float> wide(patterns.size());
  lockstep::Widen(type, patterns.data(), wide);
  std::fwrite(narrow.data(), sizeof(uint16_t), narrow.size(), stdout);
  std::fwrite(wide.data(), sizeof(float), wide.size(), stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc == 2 ? argv[1] : "";
  if (name != "float16" && name != "bfloat16") {
    std::fprintf(stderr, "usage: convert_halves float16|bfloat16 < IN > OUT\n");
    return static_cast<int>(lockstep::ExitCode::kUsage);
  }
  Convert(*lockstep::ParseDType(name));
  return 0;
}
