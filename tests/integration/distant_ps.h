// A job with copies of its shards, whose ps 1 is on a host of its own that can vanish.
#pragma once

#include <signal.h>

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/integration/step_pauses.h"
#include "tests/integration/training_run.h"
#include "tests/support/virtual_network.h"

namespace lockstep::test {

// Ps 1 is on a host of its own. Where no network can be made, it is stopped in place of its host:
// the kernel goes on to accept connections and to acknowledge bytes for it.
class DistantPs {
 public:
  static constexpr int kNumSteps = 1000;

  // Of this job, with copies or without.
  static JobText Job(const std::string& sync) {
    return {.max_steps = kNumSteps,
            .sync = sync,
            .checkpoint = "folder: 'checkpoints'",
            .more = "transport { shared_memory: OFF }"};
  }

  // `step`: how much longer a step takes.
  explicit DistantPs(absl::Duration lease, absl::Duration step = absl::ZeroDuration())
      : has_host_(VirtualNetwork::Enter().ok()), cluster_(2, 2) {
    if (has_host_) {
      network_.emplace(/*num_hosts=*/1);
      ClusterSpec spec = cluster_.spec();
      spec.ps = {absl::StrCat(VirtualNetwork::OwnAddress(), ":2222"),
                 absl::StrCat(VirtualNetwork::AddressOf(0), ":2222")};
      cluster_.UseSpec(std::move(spec));
    }
    cluster_.SlowDown(step);
    const std::string job = cluster_.WriteJob(Job("ps_replicas: 1"));
    for (const int i : {0, 1}) {
      std::vector<std::string> command = cluster_.Ps(i);
      command.push_back("--insecure");
      if (has_host_ && i == 1) command = network_->CommandOn(0, command);
      ps_.push_back(std::make_unique<Process>(std::move(command)));
    }
    for (const int i : {0, 1}) workers_.push_back(std::make_unique<Process>(cluster_.Worker(i)));
    std::vector<std::string> command = cluster_.Chief(job);
    command.push_back(absl::StrCat("--lease=", absl::ToInt64Seconds(lease)));
    command.push_back("--record_losses");
    chief_ = std::make_unique<Process>(std::move(command));
    pauses_.emplace(cluster_.spec().chief);
  }

  void Vanish() {
    if (has_host_) return network_->SetLink(0, VirtualNetwork::Link::kDown);
    ps_[1]->Signal(SIGSTOP);
  }
  // As a pod that is told to end: its address goes with the process. The longest time without a
  // step until 20 steps have been made after that.
  absl::Duration PauseAtEnd() {
    ps_[1]->Signal(SIGTERM);
    std::optional<int64_t> last;
    return PauseUntil([&] {
      if (!last.has_value() && !ps_[1]->running()) {
        if (has_host_) network_->SetLink(0, VirtualNetwork::Link::kDown);
        last = Step();
      }
      return last.has_value() && pauses_->step() > *last + 20;
    });
  }
  // The longest time without a step from now until `step` is beyond.
  absl::Duration PauseUntil(int64_t step) {
    return PauseUntil([&] { return pauses_->step() > step; });
  }
  int64_t Step() {
    pauses_->ReadStep();
    return pauses_->step();
  }
  // All but the lost one end well; the summary.
  nlohmann::json Finish() {
    for (Process* process : {chief_.get(), ps_[0].get(), workers_[0].get(), workers_[1].get()}) {
      if (process->Wait(kPatience) != 0) FAIL(Logs());
    }
    return nlohmann::json::parse(cluster_.Summary());
  }
  std::map<std::string, std::string> tensors() const {
    return TensorsOf(cluster_.folder().Path(absl::StrCat("checkpoints/ckpt-", kNumSteps)));
  }
  // Whether the second ps is on a host of its own: network namespaces are permitted.
  bool has_host() const { return has_host_; }
  std::string how() const { return has_host_ ? "its cable is pulled" : "it is stopped"; }
  std::string Logs() {
    return absl::StrCat("chief:\n", chief_->Output(), "ps 0:\n", ps_[0]->Output(), "ps 1:\n",
                        ps_[1]->Output(), "worker 0:\n", workers_[0]->Output(), "worker 1:\n",
                        workers_[1]->Output());
  }

 private:
  static constexpr absl::Duration kPatience = absl::Minutes(1);

  absl::Duration PauseUntil(const std::function<bool()>& done) {
    pauses_->Begin();
    if (!pauses_->WatchUntil(done, chief_.get(), kPatience)) FAIL(Logs());
    return pauses_->Longest();
  }

  const bool has_host_;
  Cluster cluster_;
  std::optional<VirtualNetwork> network_;
  std::vector<std::unique_ptr<Process>> ps_;
  std::vector<std::unique_ptr<Process>> workers_;
  std::unique_ptr<Process> chief_;
  std::optional<StepPauses> pauses_;
};

}  // namespace lockstep::test
