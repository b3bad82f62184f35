// Which checkpoints stay once training has diverged.
#include "common/checkpoint/retention.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "common/checkpoint/folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/checkpoint/example_checkpoint.h"

namespace lockstep {
namespace {

using Steps = std::vector<int64_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Root {
  // With values that are NaN, unless `is_finite`.
  void Save(int64_t step, bool is_finite, int keep_last, const Manifest& lineage = {.epoch = 1}) {
    const float base = is_finite ? 1 : kNan;
    REQUIRE(test::WriteExample(folder.path(), step, keep_last, base, lineage).ok());
  }
  Steps steps() const { return *ListCheckpoints(folder.path()); }
  Manifest manifest(int64_t step) const {
    return *ReadManifest(CheckpointFolder(folder.path(), step));
  }
  std::optional<int64_t> FiniteUpTo(int64_t step) const {
    return *FindFinite(folder.path(), manifest(step));
  }

  test::TemporaryFolder folder;
};

TEST_CASE("a checkpoint says whether its values are finite") {
  Root root;
  root.Save(1, true, 0);
  root.Save(2, false, 0);
  CHECK(root.manifest(1).IsFinite());
  CHECK_FALSE(root.manifest(2).IsFinite());
  CHECK(root.FiniteUpTo(1) == 1);
  CHECK(root.FiniteUpTo(2) == 1);
}

TEST_CASE("one value that is infinite, in any shard, is one too many") {
  const test::TemporaryFolder root;
  Tensor values(DType::kFloat32, {1'000'000});
  values.as<float>()[999'999] = -INFINITY;
  const bool is_read = GENERATE(false, true);
  NamedTensor tensor{"w", values.view()};
  if (is_read) {
    tensor.read = [&](uint64_t offset, std::span<std::byte> to) {
      const auto from = values.view().bytes().subspan(offset, to.size());
      std::ranges::copy(from, to.begin());
    };
  }
  CHECK_FALSE(WriteShard(root.path(), 0, 1, {tensor})->is_finite);
  values.as<float>()[999'999] = 0;
  CHECK(WriteShard(root.path(), 0, 1, {tensor})->is_finite);
}

TEST_CASE("the newest finite checkpoint stays however many follow that are not") {
  Root root;
  for (const int64_t step : {1, 2, 3}) root.Save(step, true, 2);
  for (const int64_t step : {4, 5, 6, 7}) root.Save(step, false, 2);
  CHECK(root.steps() == Steps{7, 6, 3});
  // The model has recovered.
  root.Save(8, true, 2);
  CHECK(root.steps() == Steps{8, 7});
  root.Save(9, true, 2);
  CHECK(root.steps() == Steps{9, 8});
}

TEST_CASE("the finite checkpoint before a run that began from one that is not stays") {
  Root root;
  root.Save(1, true, 1);
  root.Save(2, false, 1);
  root.Save(3, false, 1, {.epoch = 2, .origin = {.epoch = 1, .step = 2}});
  CHECK(root.steps() == Steps{3, 1});
  // Of epoch 2 no checkpoint is left after this.
  root.Save(4, false, 1, {.epoch = 3, .origin = {.epoch = 2, .step = 3}});
  CHECK(root.steps() == Steps{4, 1});
  root.Save(5, false, 1, {.epoch = 3, .origin = {.epoch = 2, .step = 3}});
  CHECK(root.steps() == Steps{5, 1});
}

TEST_CASE("the finite checkpoint of the history goes before a newer one that was abandoned") {
  Root root;
  for (const int64_t step : {1, 2, 3}) root.Save(step, true, 0);
  const Manifest second{.epoch = 2, .origin = {.epoch = 1, .step = 1}};
  root.Save(4, false, 1, second);
  CHECK(root.steps() == Steps{4, 1});
}

TEST_CASE("where no checkpoint is finite the newest are kept, as many as asked for") {
  Root root;
  for (const int64_t step : {1, 2, 3}) root.Save(step, false, 2);
  CHECK(root.steps() == Steps{3, 2});
  CHECK(root.FiniteUpTo(3) == std::nullopt);
}

}  // namespace
}  // namespace lockstep
