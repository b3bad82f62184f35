#include "tests/integration/standby_job.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kNextLook = absl::Milliseconds(2);
constexpr int kFirstSteps = 100;  // before anything happens to a job

absl::Duration Now() { return Clock::Real()->Monotonic(); }

}  // namespace

StandbyJob::StandbyJob(int max_steps, int chiefs, bool has_token, const std::string& more)
    : cluster(2, 2, chiefs) {
  if (has_token) cluster.UseToken();
  ps_0_.emplace(cluster.spec().ps[0], cluster.credentials());
  cluster.StartAll({.max_steps = max_steps,
                    .optimizer = "adam {} learning_rate { base: 0.001 }",
                    .checkpoint = absl::StrCat("folder: '", folder(), "' every_steps: 100000"),
                    .more = more},
                   kStandbyFlags, /*workers=*/0);
  for (int chief = 1; chief < chiefs; ++chief) StandBy(chief);
  for (int i = 0; i < 2; ++i) cluster.StartWorker(i);
  REQUIRE(cluster.WaitForStep(kFirstSteps, kWhole));
}

void StandbyJob::StandBy(int chief) {
  cluster.StartStandby(chief, kStandbyFlags);
  REQUIRE(cluster.chief(chief).WaitForOutput(" commands, with a lease of 2.0 s", kWhole));
}

std::optional<int64_t> StandbyJob::ClosedSteps() {
  const auto status = ps_0_->Read(absl::Seconds(2));
  if (!status.ok()) return std::nullopt;
  return status->shard().shard_step();
}

void StandbyJob::WaitForNextLook() { cluster.ps(0).Wait(kNextLook); }

absl::Duration StandbyJob::LongestPause(int chief) {
  const absl::Duration start = Now();
  absl::Duration longest, last_step = start;
  std::optional<int64_t> step = ClosedSteps();
  bool is_over = false;
  while (Now() - start < kEnd) {
    WaitForNextLook();
    const std::optional<int64_t> next = ClosedSteps();
    if (!next.has_value() || next == step) continue;
    step = next;
    longest = std::max(longest, Now() - last_step);
    last_step = Now();
    if (is_over) return longest;
    // One more step after the line that says so.
    is_over = cluster.chief(chief).WaitForOutput("taking over at step", absl::ZeroDuration());
  }
  return absl::InfiniteDuration();
}

void StandbyJob::CheckEndsWell(int chief) {
  const auto code = cluster.chief(chief).Wait(kWhole);
  INFO(cluster.Logs());
  CHECK(code == 0);
  for (int i = 0; i < 2; ++i) {
    CHECK(cluster.worker(i).Wait(kEnd) == 0);
    CHECK(cluster.ps(i).Wait(kEnd) == 0);
  }
}

CalmRun::CalmRun(int steps, const std::string& more) {
  StandbyJob job(steps, 1, false, more);
  job.CheckEndsWell(0);
  losses = Losses(nlohmann::json::parse(job.cluster.Summary()));
  tensors = TensorsOf(absl::StrCat(job.folder(), "/ckpt-", steps));
}

void CheckSameBits(StandbyJob* job, int chief, const CalmRun& calm) {
  const auto summary = nlohmann::json::parse(job->cluster.Summary(chief));
  const std::vector<double> losses = Losses(summary);
  const int64_t start = summary["start_step"];
  CHECK(start >= kFirstSteps);
  REQUIRE(losses.size() == calm.losses.size() - start);
  CHECK(std::equal(losses.begin(), losses.end(), calm.losses.begin() + start));
  CHECK(TensorsOf(absl::StrCat(job->folder(), "/ckpt-", calm.losses.size())) == calm.tensors);
}

}  // namespace lockstep::test
