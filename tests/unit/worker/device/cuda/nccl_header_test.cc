// Our declarations of NCCL's interface against nccl.h, and against the library itself, which can be
// opened without a GPU.
#include <nccl.h>

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/cuda/same_call.h"
#include "worker/device/cuda/nccl_library.h"

namespace lockstep::worker::cuda {
namespace {

static_assert(kNcclSuccess == ncclSuccess);
static_assert(kNcclFloat32 == ncclFloat32);
static_assert(kNcclSum == ncclSum);

#define LOCKSTEP_COMPARE(name, result, symbol, parameters)                              \
  static_assert(test::SameCall(decltype(NcclFunctions::name){}, decltype(&::symbol){}), \
                #symbol " has other parameters in nccl.h");
LOCKSTEP_NCCL_FUNCTIONS(LOCKSTEP_COMPARE)
#undef LOCKSTEP_COMPARE

TEST_CASE("the toolkit's NCCL has every function that is used, and the version of its header") {
  const auto library = NcclLibrary::Open(LOCKSTEP_NCCL);
  INFO(library.status().ToString());
  REQUIRE(library.ok());
  CHECK(library->version() == absl::StrCat(NCCL_MAJOR, ".", NCCL_MINOR, ".", NCCL_PATCH));
  CHECK_THAT(std::string(library->ToStatus(ncclInvalidArgument, "ncclReduce").message()),
             Catch::StartsWith("ncclReduce: invalid argument"));
}

}  // namespace
}  // namespace lockstep::worker::cuda
