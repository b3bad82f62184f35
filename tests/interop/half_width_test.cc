// The types of half the width, as NumPy and TensorFlow have them.
#include <catch2/catch.hpp>
#include <string>

#include "tests/interop/python.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

TEST_CASE("numbers become float16 and bfloat16, and float32 again, as in NumPy, bit for bit") {
  const std::string told = RunPython("compare_halves.py", {Binary("tests/interop/convert_halves")});
  CHECK_THAT(told, Catch::Contains("bfloat16: ") && Catch::Contains("65536 widened"));
}

}  // namespace
}  // namespace lockstep::test
