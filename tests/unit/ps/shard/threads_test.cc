// A shard whose variables are summed and applied by several threads.
#include <atomic>
#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;

// Elements of small and large variables, mixed.
const std::vector<int64_t> kSizes = {3, 200000, 1, 40000, 50000, 7, 70000, 300, 300001, 5};

std::vector<float> Gradient(uint32_t worker, size_t variable, int64_t step) {
  std::vector<float> gradient(kSizes[variable]);
  for (size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = static_cast<float>((i * 7 + worker * 13 + variable * 3 + step) % 41) / 64.0f;
  }
  return gradient;
}

// Two workers push all variables before the grant comes, so that all close at once.
std::vector<std::vector<float>> AfterTwoSteps(int threads) {
  std::vector<test::SpecText> specs;
  for (size_t v = 0; v < kSizes.size(); ++v) {
    specs.push_back({.name = "v" + std::to_string(v), .dims = {kSizes[v]}, .initial = 1});
  }
  CreateVariablesRequest plan = test::PlanOf(test::PlacementOf(specs), 2, 2);
  plan.mutable_optimizer()->mutable_adam();
  Harness harness(plan, {.threads = threads});
  for (int64_t step = 0; step < 2; ++step) {
    for (uint32_t worker = 0; worker < 2; ++worker) {
      for (size_t v = 0; v < kSizes.size(); ++v) {
        const uint64_t push_seq = step * kSizes.size() + v + 1;
        REQUIRE(harness.Push(worker, push_seq, step, static_cast<uint32_t>(v),
                             Gradient(worker, v, step)) == PushStatus::kAccepted);
      }
    }
    const auto closed = harness.Grant(step, 2, 0.01f);
    REQUIRE_FALSE(closed.IsParked());
    REQUIRE(closed.status().ok());
  }
  std::vector<std::vector<float>> values;
  for (size_t v = 0; v < kSizes.size(); ++v) {
    values.push_back(harness.Read(2, static_cast<uint32_t>(v)));
    REQUIRE(values.back().size() == static_cast<size_t>(kSizes[v]));
  }
  return values;
}

TEST_CASE("variables of all sizes that close at once have the same values with any threads") {
  const auto alone = AfterTwoSteps(1);
  CHECK(alone[0][0] < 1);
  for (const int threads : {2, 5}) CHECK(AfterTwoSteps(threads) == alone);
}

TEST_CASE("rows that are pulled while their table changes are all of one version") {
  constexpr int64_t kTableRows = 64;
  constexpr int64_t kTableWidth = 9;
  constexpr int64_t kSteps = 200;
  const Shape shape({kTableRows, kTableWidth});
  Harness harness(test::PlanOf(
      test::PlacementOf({{.name = "t", .dims = {kTableRows, kTableWidth}, .sparse = true}}), 1, 1));
  std::vector<int64_t> all(kTableRows);
  std::iota(all.begin(), all.end(), 0);
  const std::vector<PullPiece> pieces = {{.variable = VariableId(0), .rows = all}, {VariableId(0)}};

  std::atomic<int64_t> published = 0;
  std::atomic<int> torn = 0;
  std::thread reader([&] {
    for (int64_t version = 0; version < kSteps; version = published) {
      const auto pulled = harness.Pull(0, version, pieces);
      // It may have been two steps behind before it was copied.
      if (absl::IsUnavailable(pulled.status())) continue;
      for (const PulledPiece& piece : pulled->pieces) {
        for (const float value : test::ValuesOf(piece)) {
          torn += value != static_cast<float>(pulled->version.value());
        }
      }
    }
  });
  const std::vector<float> gradient(kTableRows * kTableWidth, -1);
  for (int64_t step = 0; step < kSteps; ++step) {
    const auto closed = harness.Grant(step, 1, 1);
    const auto message = test::Message(test::IdentityOf(0), static_cast<uint64_t>(step) + 1, step)
                             .Rows(0, shape, all, gradient);
    REQUIRE(harness.shard.Push(test::Message(message).Ready()).ok());
    published = step + 1;
  }
  reader.join();
  CHECK(torn == 0);
}

}  // namespace
}  // namespace lockstep::ps
