// How long a job whose shards have copies stands still when a ps is killed. '[.large]' has
// variables of 64 MiB and 24 kills, over either transport.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/integration/step_pauses.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Minutes(2);
constexpr absl::Duration kCalm = absl::Minutes(15);
constexpr absl::Duration kMedianAllowed = absl::Seconds(1);
constexpr absl::Duration kWorstAllowed = absl::Seconds(2);
constexpr int kForeverSteps = 1'000'000;
constexpr int kInterrupted = 130;
constexpr uint64_t kLongestMomentMs = 200;  // after the steps that a kill waits for
constexpr char kComplete[] = "the job survives the loss of any one ps again";

// Dense variables of so many MiB. With few examples the steps are the way of gradients and values.
JobText Job(int mebibytes, const std::string& transport) {
  const int units = mebibytes * ((1 << 20) / static_cast<int>(sizeof(float))) / 75;
  return {.global_batch = 4,
          .max_steps = kForeverSteps,
          .optimizer = "momentum { momentum: 0.9 } learning_rate { base: 0.001 }",
          .sync = "ps_replicas: 1",
          .checkpoint = "folder: 'checkpoints'",
          .evaluation = "not_at_end: true",
          .model = absl::StrCat(
              "input_shape: [8, 8, 1] layers { name: 'flatten' flatten {} } "
              "layers { name: 'hidden' dense { units: ",
              units,
              " } } layers { name: 'relu' relu {} } layers { name: 'scores' dense { units: 10 } } "
              "layers { name: 'loss' softmax_cross_entropy {} }"),
          .more = absl::StrCat("transport { ", transport, " }")};
}

// A job whose ps are killed, and started again at once.
class KilledPs {
 public:
  explicit KilledPs(const JobText& job) : cluster_(2, 2), pauses_(cluster_.spec().chief) {
    cluster_.StartAll(job);
    pauses_.Begin();
    WaitForSteps(20);
  }

  // Returns the longest time without a step, from the kill until each shard has a copy again.
  absl::Duration Kill(int index, absl::Duration moment) {
    const absl::Time until = absl::Now() + moment;
    WatchUntil([&] { return absl::Now() >= until; });
    const size_t read_to = cluster_.chief().Output().size();
    pauses_.Begin();
    cluster_.ps(index).Signal(SIGKILL);
    REQUIRE(cluster_.ps(index).Wait(kWhole) == 128 + SIGKILL);
    cluster_.StartPs(index);
    WatchUntil([&] { return absl::StrContains(cluster_.chief().OutputFrom(read_to), kComplete); });
    WaitForSteps(5);
    return pauses_.Longest();
  }

  // Ends the job with a checkpoint, and compares it with that of a run of as many steps that
  // nothing disturbs. Losses of jobs with kills: ps_copy_test.cc.
  void Finish(JobText job) {
    cluster_.chief().Signal(SIGINT);
    const auto is_interrupted = [&](Process& process) {
      return process.Wait(kWhole) == kInterrupted;
    };
    bool all = is_interrupted(cluster_.chief());
    for (const int i : {0, 1}) all = all && is_interrupted(cluster_.ps(i));
    for (const int i : {0, 1}) all = all && is_interrupted(cluster_.worker(i));
    if (!all) FAIL(cluster_.Logs());
    CHECK_FALSE(absl::StrContains(cluster_.chief().Output(), "every ps goes back to"));
    const std::string newest = cluster_.folder().Read("checkpoints/LATEST");
    REQUIRE(absl::SimpleAtoi(absl::StripPrefix(absl::StripAsciiWhitespace(newest), "ckpt-"),
                             &job.max_steps));
    job.sync = "";
    Cluster calm(2, 2);
    calm.StartAll(job);
    REQUIRE(calm.chief().Wait(kCalm) == 0);
    test::Finish(calm);
    const std::string last = absl::StrCat("checkpoints/ckpt-", job.max_steps);
    CHECK(TensorsOf(calm.folder().Path(last)) == TensorsOf(cluster_.folder().Path(last)));
  }

 private:
  void WatchUntil(const std::function<bool()>& done) {
    if (!pauses_.WatchUntil(done, &cluster_.chief(), kWhole)) FAIL(cluster_.Logs());
  }
  // More.
  void WaitForSteps(int number) {
    const int seen = pauses_.num_advances();
    WatchUntil([&] { return pauses_.num_advances() >= seen + number; });
  }

  Cluster cluster_;
  StepPauses pauses_;
};

// In turn, at random moments of a step. Ascending.
std::vector<absl::Duration> PausesOf(int kills, const JobText& job) {
  std::minstd_rand random(static_cast<unsigned>(kills));
  KilledPs run(job);
  std::vector<absl::Duration> pauses;
  for (int i = 0; i < kills; ++i) {
    pauses.push_back(run.Kill(i % 2, absl::Milliseconds(random() % kLongestMomentMs)));
  }
  run.Finish(job);
  std::ranges::sort(pauses);
  return pauses;
}

TEST_CASE("a ps with a copy that is killed, and then the other one, costs little time and no bit") {
  const std::string transport = GENERATE("", "shared_memory: OFF");
  CAPTURE(transport);
  CHECK(PausesOf(2, Job(1, transport)).back() < kWorstAllowed);
}

TEST_CASE("a ps of a job of 64 MiB that is killed costs a second at most", "[.large]") {
  const std::string transport = GENERATE("", "shared_memory: OFF");
  const std::vector<absl::Duration> pauses = PausesOf(24, Job(64, transport));
  const absl::Duration median = pauses[pauses.size() / 2];
  WARN(absl::StrFormat("64 MiB, %s: %d kills, without a step for a median of %.2f s, at most %.2f",
                       transport.empty() ? "shared memory" : "gRPC", pauses.size(),
                       absl::ToDoubleSeconds(median), absl::ToDoubleSeconds(pauses.back())));
  CHECK(median <= kMedianAllowed);
  CHECK(pauses.back() <= kWorstAllowed);
}

}  // namespace
}  // namespace lockstep::test
