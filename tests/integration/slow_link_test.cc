// A worker on a host of its own whose link becomes slow: a backup worker takes its place.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "tests/integration/training_run.h"
#include "tests/support/virtual_network.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr int kNumWorkers = 3;
constexpr int kSlowWorker = 2;
constexpr int kSlowHost = 2;
// Of each phase. What else the machine does changes from second to second, so that phases with a
// fast and with a slow link take turns, and the best one of each kind counts.
constexpr int kPhaseSteps = 100;
// Before each phase: what a slow link has not sent is sent, and what the job made meanwhile is no
// step of the phase.
constexpr int kStepsToSettle = 50;
constexpr int kRounds = 3;
constexpr double kLeastShare = 0.9;

class SlowLinkJob {
 public:
  // Ps and chief are on hosts of their own, as the slow worker is, which has to reach them.
  SlowLinkJob() : network_(kSlowHost + 1), cluster_(1, kNumWorkers) {
    ClusterSpec spec = cluster_.spec();
    Place(0, Role::kPs, 0, &spec.ps[0]);
    Place(1, Role::kChief, 0, &spec.chief);
    Place(kSlowHost, Role::kWorker, kSlowWorker, &spec.workers[kSlowWorker]);
    cluster_.UseSpec(std::move(spec));
    cluster_.SlowDown(absl::Milliseconds(10));
    cluster_.StartAll({.max_steps = 1'000'000,
                       .sync = "replicas_to_aggregate: 2",
                       .more = "transport { shared_memory: OFF }"});
    AwaitSteps(50);
  }

  void SetLink(VirtualNetwork::Link link) { network_.SetLink(kSlowHost, link); }
  // How long it takes to make the next steps.
  absl::Duration TimeOfPhase() {
    AwaitSteps(kStepsToSettle);
    const absl::Time begin = absl::Now();
    AwaitSteps(kPhaseSteps);
    return absl::Now() - begin;
  }
  JobStatus Status() {
    const auto status = FetchStatus(cluster_.spec().chief, kWhole);
    REQUIRE(status.ok());
    return status->job();
  }
  Cluster& cluster() { return cluster_; }

 private:
  void Place(int host, Role role, int index, std::string* address) {
    cluster_.PlaceOn(network_, host, role, index);
    *address = absl::StrCat(VirtualNetwork::AddressOf(host), ":2222");
  }
  void AwaitSteps(int steps) {
    step_ += steps;
    const bool goes_on = cluster_.WaitForStep(step_, kWhole);
    INFO(cluster_.Logs());
    REQUIRE(goes_on);
  }

  VirtualNetwork network_;
  Cluster cluster_;
  int64_t step_ = 0;
};

// How many gradients of a worker were taken.
struct Gradients {
  void Add(const JobStatus& before, const JobStatus& after, int worker) {
    accepted += after.members(worker).accepted() - before.members(worker).accepted();
    stale += after.members(worker).stale() - before.members(worker).stale();
  }
  uint64_t accepted = 0;
  uint64_t stale = 0;
};

// One case alone: the network is that of the process.
TEST_CASE("a worker with a link of 1 Mbit/s is the straggler, and costs the others no tenth") {
  const absl::Status entered = VirtualNetwork::Enter();
  INFO(entered.ToString());
  REQUIRE(entered.ok());
  SlowLinkJob job;
  absl::Duration fast = absl::InfiniteDuration();
  absl::Duration slow = absl::InfiniteDuration();
  Gradients straggler, others;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 2; ++i) fast = std::min(fast, job.TimeOfPhase());
    job.SetLink(VirtualNetwork::Link::kOneMbit);
    slow = std::min(slow, job.TimeOfPhase());
    // Workers tell their counts once a second.
    const JobStatus before = job.Status();
    slow = std::min(slow, job.TimeOfPhase());
    const JobStatus after = job.Status();
    job.SetLink(VirtualNetwork::Link::kFast);
    straggler.Add(before, after, kSlowWorker);
    for (const int other : {0, 1}) others.Add(before, after, other);
  }
  const double share = absl::FDivDuration(fast, slow);
  WARN("with a slow link the job keeps "
       << 100 * share << " % of its rate; the straggler: " << straggler.accepted
       << " gradients accepted, " << straggler.stale << " stale, the others: " << others.accepted
       << ", " << others.stale);
  INFO(job.cluster().Logs());
  CHECK(share >= kLeastShare);
  // Each of the two others has more than four times as many.
  CHECK(others.accepted > 2 * 4 * straggler.accepted);
  CHECK(straggler.stale > 0);
  CHECK_THAT(job.cluster().chief().Output(), !Catch::Contains(" is lost: "));
}

}  // namespace
}  // namespace lockstep::test
