#include "worker/evaluate/output_files.h"

#include <catch2/catch.hpp>

#include "common/dataset/idx.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker/evaluate/fakes.h"

namespace lockstep::worker {
namespace {

using Catch::Matchers::Contains;

ModelGraph Graph() {
  return test::MakeGraph(R"(
    input_shape: [4, 6]
    layers { name: "flat" flatten {} }
    layers { name: "code" dense { units: 5 } }
    layers { name: "again" dense { units: 24 } }
    layers { name: "loss" l2_loss {} })");
}

TEST_CASE("outputs have the shape of their layer, or of the input where they are as many") {
  const ModelGraph graph = Graph();
  CHECK(OutputShapeOf(graph) == Shape({4, 6}));
  CHECK(OutputShapeOf(graph.ForLayer(1)) == Shape({4, 6}));
  CHECK(OutputShapeOf(graph.ForLayer(2)) == Shape({5}));
}

TEST_CASE("outputs that are images become a picture, and others are refused") {
  const lockstep::test::TemporaryFolder folder;
  const std::string path = folder.Path("a.png");
  REQUIRE(WritePng(path, Shape({2, 3, 1}), std::vector<float>(12, 0.5f)).ok());
  // Two tiles side by side, each of 32 x 48 pixels.
  CHECK(folder.Read("a.png").substr(12, 12) == std::string("IHDR\0\0\0\x66\0\0\0\x24", 12));
  for (const Shape& shape : {Shape({5}), Shape({2, 3, 2}), Shape({1, 2, 3, 1})}) {
    const absl::Status status = WritePng(path, shape, std::vector<float>(30));
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Contains("--png: ") && Contains(shape.ToString()) &&
                                                  Contains("Remedy: --layer=NAME"));
  }
}

TEST_CASE("outputs as examples are in the units of the data") {
  const lockstep::test::TemporaryFolder folder;
  DataDef data;
  data.set_offset(8);
  data.set_scale(0.125);
  const std::string path = folder.Path("a.idx");
  REQUIRE(WriteExamples(path, Shape({1, 2}), data, {0, 0.5f, -1, 1}).ok());
  const auto records = ReadIdx(path);
  REQUIRE(records.ok());
  CHECK(records->shape == Shape({1, 2}));
  VisitElements(*records, [](auto all) {
    CHECK(std::vector<double>(all.begin(), all.end()) == std::vector<double>{8, 12, 0, 16});
  });
}

}  // namespace
}  // namespace lockstep::worker
