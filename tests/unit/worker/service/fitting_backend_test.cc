// Models with layers that a GPU has no op for.
#include "worker/service/fitting_backend.h"

#include <catch2/catch.hpp>
#include <string>

#include "google/protobuf/text_format.h"
#include "tests/support/cuda/fake_gpu.h"

namespace lockstep::worker {
namespace {

using Kind = DeviceChoice::Kind;

ModelGraph GraphWith(const std::string& layer) {
  ModelDef model;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      "name: 'm' input_shape: [ 6 ] layers { name: 'first' " + layer +
          " } layers { name: 'scores' dense { units: 3 } }"
          " layers { name: 'loss' softmax_cross_entropy {} }",
      &model));
  return *ModelGraph::Build(model);
}

TEST_CASE("auto computes a model on the CPU that its GPU cannot, and all others on the GPU") {
  const auto gpu = test::MakeFakeGpu(1);
  const Backend found = *Backend::Open({.kind = Kind::kAuto}, &gpu->driver());
  CHECK(FittingBackend(found, GraphWith("dense { units: 3 }")).name() == "cuda:0");
  CHECK(FittingBackend(found, GraphWith("synthetic { elements: 3 }")).name() == "cpu");
}

TEST_CASE("a GPU that was named stays") {
  const auto gpu = test::MakeFakeGpu(1);
  const Backend named = *Backend::Open({.kind = Kind::kCuda}, &gpu->driver());
  CHECK(FittingBackend(named, GraphWith("synthetic { elements: 3 }")).name() == "cuda:0");
}

}  // namespace
}  // namespace lockstep::worker
