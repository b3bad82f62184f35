// libFuzzer's side: fuzz --target=NAME [libFuzzer's flags] [FOLDERS].
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "tests/fuzz/target.h"

namespace {

lockstep::fuzz::Run run = nullptr;

}  // namespace

// libFuzzer passes over arguments that begin with "--".
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  for (int i = 1; i < *count; ++i) {
    absl::string_view argument = (*arguments)[i];
    if (absl::ConsumePrefix(&argument, "--target=")) run = lockstep::fuzz::FindTarget(argument);
  }
  if (run != nullptr) return 0;
  std::fprintf(stderr, "fuzz: expected --target= with one of %s\n",
               absl::StrJoin(lockstep::fuzz::TargetNames(), " ").c_str());
  std::exit(64);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
