// Checkpoints that a thread writes while the shard trains on have the bytes of those of a shard
// that waits for each. Run it under ThreadSanitizer too.
#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using lockstep::test::TemporaryFolder;
using test::Harness;
using test::kCommand;
using test::Message;
using test::PlacementOf;
using test::PlanOf;

constexpr int64_t kSteps = 24;
constexpr int64_t kSaveEvery = 3;
constexpr int64_t kLarge = 150'003;  // three ranges
constexpr int64_t kRows = 2'000;
constexpr int64_t kWidth = 5;

// A dense variable that threads update together, a small one, a table, a statistic.
CreateVariablesRequest Plan(bool lazy) {
  CreateVariablesRequest plan =
      PlanOf(PlacementOf({{"large", {kLarge}, 0, true, 1},
                          {"small", {7}, 0, true, 2},
                          {"table", {kRows, kWidth}, 0, true, 3, /*sparse=*/true},
                          {"mean", {1}, 0, false}}),
             1, 1);
  plan.mutable_optimizer()->mutable_adam()->set_lazy(lazy);
  plan.mutable_optimizer()->mutable_variable_averages()->set_decay(0.5f);
  return plan;
}

std::vector<float> Gradient(size_t size, int64_t step) {
  std::vector<float> gradient(size);
  for (size_t i = 0; i < size; ++i) {
    gradient[i] = static_cast<float>((i * 7 + static_cast<size_t>(step) * 13) % 41) / 64 - 0.3f;
  }
  return gradient;
}

bool Step(Harness* harness, int64_t step, bool keep) {
  const auto closed = harness->Grant(
      {.command = kCommand, .step = GlobalStep(step), .learning_rate = 0.1f, .keep_slots = keep});
  const auto push_seq = static_cast<uint64_t>(step) + 1;
  std::vector<int64_t> rows;
  for (int64_t row = step % 3; row < kRows; row += 3) rows.push_back(row);
  Message message(test::IdentityOf(0), push_seq, step);
  message.Whole(0, Shape({kLarge}), Gradient(kLarge, step))
      .Whole(1, Shape({7}), Gradient(7, step))
      .Rows(2, Shape({kRows, kWidth}), rows, Gradient(rows.size() * kWidth, step))
      .Whole(3, Shape({1}), {static_cast<float>(step)});
  return harness->shard.Push(message.Ready(1 << 20)).ok() && !closed.IsParked() &&
         closed.status().ok();
}

std::string ContentsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The files of the kept versions, in their order.
std::vector<std::string> Train(bool lazy, bool trains_on) {
  const TemporaryFolder folder;
  Harness harness(Plan(lazy), {.threads = 2});
  std::vector<std::string> files;
  std::thread saver;
  std::atomic<bool> failed = false;
  for (int64_t step = 0; step < kSteps; ++step) {
    const bool keep = step % kSaveEvery == 0;
    if (keep && saver.joinable()) saver.join();
    failed = failed || !Step(&harness, step, keep);
    if (!keep) continue;
    const GlobalStep version(step + 1);
    saver = std::thread([&harness, &files, &failed, &folder, version] {
      const auto saved =
          harness.shard.Save(kCommand, version, folder.Path(std::to_string(version.value())));
      failed = failed || !saved.ok() || !harness.shard.ReleaseSnapshot(kCommand, version).ok();
      if (!saved.ok()) return;
      files.push_back(ContentsOf(folder.Path(std::to_string(version.value()) + "/" + saved->file)));
    });
    if (!trains_on) saver.join();
  }
  if (saver.joinable()) saver.join();
  CHECK_FALSE(failed);
  return files;
}

TEST_CASE("checkpoints that are written while training goes on have the bytes of their versions") {
  const bool lazy = GENERATE(false, true);
  CAPTURE(lazy);
  const std::vector<std::string> expected = Train(lazy, /*trains_on=*/false);
  REQUIRE(expected.size() == kSteps / kSaveEvery);
  CHECK(expected[0] != expected[1]);
  for (int round = 0; round < 3; ++round) CHECK((Train(lazy, /*trains_on=*/true) == expected));
}

}  // namespace
}  // namespace lockstep::ps
