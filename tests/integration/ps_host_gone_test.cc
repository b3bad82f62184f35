// A ps whose host vanishes: its connections stay open, and nothing answers any more.
#include <signal.h>

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "tests/integration/step_pauses.h"
#include "tests/integration/training_run.h"
#include "tests/support/virtual_network.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Minutes(1);
constexpr absl::Duration kLease = absl::Seconds(2);
// A machine at work takes longer than lease + 1 s.
constexpr absl::Duration kAllowed = absl::Seconds(5);
constexpr int kSteps = 1000;

JobText Job(const std::string& sync) {
  return {.max_steps = kSteps,
          .sync = sync,
          .checkpoint = "folder: 'checkpoints'",
          .more = "transport { shared_memory: OFF }"};
}

// Ps 1 is on a host of its own. Where no network can be made, it is stopped in place of its host:
// the kernel goes on to accept connections and to acknowledge bytes for it.
class DistantPs {
 public:
  DistantPs() : has_host_(VirtualNetwork::Enter().ok()), cluster_(2, 2) {
    if (has_host_) {
      network_.emplace(/*num_hosts=*/1);
      ClusterSpec spec = cluster_.spec();
      spec.ps = {absl::StrCat(VirtualNetwork::OwnAddress(), ":2222"),
                 absl::StrCat(VirtualNetwork::AddressOf(0), ":2222")};
      cluster_.UseSpec(std::move(spec));
    }
    const std::string job = cluster_.WriteJob(Job("ps_replicas: 1"));
    for (const int i : {0, 1}) {
      std::vector<std::string> command = cluster_.Ps(i);
      command.push_back("--insecure");
      if (has_host_ && i == 1) command = network_->CommandOn(0, command);
      ps_.push_back(std::make_unique<Process>(std::move(command)));
    }
    for (const int i : {0, 1}) workers_.push_back(std::make_unique<Process>(cluster_.Worker(i)));
    std::vector<std::string> command = cluster_.Chief(job);
    command.push_back(absl::StrCat("--lease=", absl::ToInt64Seconds(kLease)));
    command.push_back("--record_losses");
    chief_ = std::make_unique<Process>(std::move(command));
    pauses_.emplace(cluster_.spec().chief);
  }

  void Vanish() {
    if (has_host_) return network_->SetLink(0, VirtualNetwork::Link::kDown);
    ps_[1]->Signal(SIGSTOP);
  }
  // The longest time without a step from now until `step` is beyond.
  absl::Duration PauseUntil(int64_t step) {
    pauses_->Begin();
    const auto is_beyond = [&] { return pauses_->step() > step; };
    if (!pauses_->WatchUntil(is_beyond, chief_.get(), kWhole)) FAIL(Logs());
    return pauses_->Longest();
  }
  int64_t Step() {
    pauses_->Look();
    return pauses_->step();
  }
  // All but the lost one end well; the summary.
  nlohmann::json Finish() {
    for (Process* process : {chief_.get(), ps_[0].get(), workers_[0].get(), workers_[1].get()}) {
      if (process->Wait(kWhole) != 0) FAIL(Logs());
    }
    return nlohmann::json::parse(cluster_.Summary());
  }
  std::map<std::string, std::string> tensors() const {
    return TensorsOf(cluster_.folder().Path(absl::StrCat("checkpoints/ckpt-", kSteps)));
  }
  std::string how() const { return has_host_ ? "its cable is pulled" : "it is stopped"; }
  std::string Logs() {
    return absl::StrCat("chief:\n", chief_->Output(), "ps 0:\n", ps_[0]->Output(), "ps 1:\n",
                        ps_[1]->Output(), "worker 0:\n", workers_[0]->Output(), "worker 1:\n",
                        workers_[1]->Output());
  }

 private:
  const bool has_host_;
  Cluster cluster_;
  std::optional<VirtualNetwork> network_;
  std::vector<std::unique_ptr<Process>> ps_;
  std::vector<std::unique_ptr<Process>> workers_;
  std::unique_ptr<Process> chief_;
  std::optional<StepPauses> pauses_;
};

// One case alone: the network is that of the process.
TEST_CASE("a ps whose host vanishes is replaced by its copy after a lease, and costs no bit") {
  DistantPs job;
  job.PauseUntil(100);
  job.Vanish();
  const absl::Duration pause = job.PauseUntil(job.Step() + 20);
  WARN(absl::StrFormat("%s: %.2f s without a step, with a lease of %d s", job.how(),
                       absl::ToDoubleSeconds(pause), absl::ToInt64Seconds(kLease)));
  CHECK(pause > absl::Milliseconds(500));  // a step was waited for
  CHECK(pause < kAllowed);
  const nlohmann::json summary = job.Finish();
  CHECK(summary["start_step"] == 0);
  CHECK(summary["warnings"].empty());

  Cluster calm(2, 2);
  calm.StartAll(Job(""), {"--record_losses"});
  CHECK(Losses(Finish(calm)) == Losses(summary));
  CHECK(TensorsOf(calm.folder().Path(absl::StrCat("checkpoints/ckpt-", kSteps))) == job.tensors());
}

}  // namespace
}  // namespace lockstep::test
