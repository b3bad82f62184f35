#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "common/dataset/example_table.h"
#include "common/dataset/measure.h"

namespace lockstep {
namespace {

constexpr char kFolder[] = "deploy/data/digits/";

DataDef Digits() {
  DataDef data;
  data.mutable_idx()->add_train_images(std::string(kFolder) + "train-images.idx.gz");
  data.mutable_idx()->add_train_labels(std::string(kFolder) + "train-labels.idx.gz");
  data.mutable_idx()->set_test_images(std::string(kFolder) + "test-images.idx.gz");
  data.mutable_idx()->set_test_labels(std::string(kFolder) + "test-labels.idx.gz");
  return data;
}

TEST_CASE("The digits that are shipped have the sizes of their README") {
  const auto sizes = MeasureDataset(Digits(), {Shape({8, 8, 1}), true, 10});
  REQUIRE(sizes.ok());
  CHECK(sizes->train == 1438);
  CHECK(sizes->test == 359);
  CHECK(sizes->example_shape == Shape({8, 8}));
}

TEST_CASE("The digits that are shipped are those of scikit-learn") {
  // Histograms and sums as NumPy gives them for scikit-learn's arrays.
  struct Expected {
    Split split;
    std::vector<int> histogram;
    int64_t sum;
  };
  const Expected expected[] = {
      {Split::kTrain, {151, 161, 143, 131, 147, 154, 150, 136, 127, 138}, 450304},
      {Split::kTest, {27, 21, 34, 52, 34, 28, 31, 43, 47, 42}, 111414},
  };
  for (const Expected& e : expected) {
    const auto table = ReadExamples(Digits(), e.split);
    REQUIRE(table.ok());
    std::vector<int> histogram(10);
    for (std::byte label : table->labels.bytes) ++histogram.at(std::to_integer<size_t>(label));
    CHECK(histogram == e.histogram);
    const auto add = [](int64_t sum, std::byte b) { return sum + std::to_integer<int64_t>(b); };
    const auto& pixels = table->features.bytes;
    CHECK(std::accumulate(pixels.begin(), pixels.end(), int64_t{0}, add) == e.sum);
    CHECK(*std::max_element(pixels.begin(), pixels.end()) == std::byte{16});
  }
}

}  // namespace
}  // namespace lockstep
