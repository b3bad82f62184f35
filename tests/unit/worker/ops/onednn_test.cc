// What the library of the CPU's ops refuses.
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/worker/ops/op_check.h"
#include "worker/ops/conv2d.h"

namespace lockstep::worker {
namespace {

TEST_CASE("a library that refuses a convolution is an error that says which op") {
  TestOps ops(1);
  Conv2DOptions options;
  options.input = {4, 4, 1};
  options.output = {9, 4, 1};
  options.window.extent = {3, 3};
  const OpTable::MadeOr<Op> op = ops.Make(options);
  REQUIRE(absl::IsInternal(op.status()));
  CHECK_THAT(std::string(op.status().message()), Catch::StartsWith("conv2d: oneDNN: "));
}

}  // namespace
}  // namespace lockstep::worker
