#include "worker/collective/check_same_tensors.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

std::vector<TensorSpec> Model(const std::vector<std::string>& names) {
  std::vector<TensorSpec> tensors;
  for (const std::string& name : names) {
    tensors.push_back({name, DType::kFloat32, Shape({2, 3})});
  }
  return tensors;
}

std::string Difference(const std::vector<TensorSpec>& own, const std::vector<TensorSpec>& theirs) {
  return std::string(CheckSameTensors(own, theirs, "tower1").message());
}

TEST_CASE("the same gradients are the same") {
  CHECK(CheckSameTensors(Model({"a", "b"}), Model({"a", "b"}), "tower1").ok());
  CHECK(CheckSameTensors({}, {}, "tower1").ok());
}

TEST_CASE("another number of gradients is told with those that one side lacks") {
  CHECK(Difference(Model({"a", "b", "c"}), Model({"a", "d"})) ==
        "gradients: expected 3, got 2 from tower1; only in this worker: b, c; only in tower1: d. "
        "Remedy: give every tower of every worker the same model");
  CHECK(Difference(Model({}), Model({"1", "2", "3", "4", "5", "6", "7"})) ==
        "gradients: expected 0, got 7 from tower1; only in tower1: 1, 2, 3, 4, 5 and 2 more. "
        "Remedy: give every tower of every worker the same model");
}

TEST_CASE("names, shapes and types are told with both values") {
  const std::vector<TensorSpec> own = Model({"a", "b"});
  CHECK(Difference(own, Model({"a", "x"})) ==
        "gradient 1: expected b float32 [2,3], got x float32 [2,3] from tower1; only in this "
        "worker: b; only in tower1: x. Remedy: give every tower of every worker the same model");
  std::vector<TensorSpec> theirs = own;
  theirs[0].shape = Shape({3, 2});
  CHECK(Difference(own, theirs) ==
        "gradient 0: expected a float32 [2,3], got a float32 [3,2] from tower1. Remedy: give every "
        "tower of every worker the same model");
  theirs = own;
  theirs[1].dtype = DType::kFloat64;
  CHECK(Difference(own, theirs) ==
        "gradient 1: expected b float32 [2,3], got b float64 [2,3] from tower1. Remedy: give every "
        "tower of every worker the same model");
  // The same names in another order.
  CHECK(Difference(own, Model({"b", "a"})) ==
        "gradient 0: expected a float32 [2,3], got b float32 [2,3] from tower1. Remedy: give every "
        "tower of every worker the same model");
}

TEST_CASE("names that another worker has sent come on one line, and not in full length") {
  const std::string difference =
      Difference(Model({"a"}), Model({"b\nc\x1b[2J" + std::string(5000, 'd')}));
  CHECK_THAT(difference, Catch::Contains("got b\\nc\\x1b[2Jdd") &&
                             Catch::Contains("only in tower1: b\\nc\\x1b[2Jdd"));
  CHECK(difference.size() < 1000);
}

}  // namespace
}  // namespace lockstep::worker
