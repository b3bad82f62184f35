// A job of which two tasks, each on a host of its own, cannot reach each other for a while. Nobody
// is told: packets are dropped in silence.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/checkpoint/checkpoint.h"
#include "common/client/status_client.h"
#include "tests/integration/new_output.h"
#include "tests/integration/training_run.h"
#include "tests/support/process.h"
#include "tests/support/virtual_network.h"

namespace lockstep::test {

inline constexpr absl::Duration kPatience = absl::Seconds(60);
inline const std::vector<std::string> kTwoSecondLease = {"--lease=2"};

// Over sockets, until it is stopped.
inline JobText EndlessJob(const std::string& sync = "") {
  return {.max_steps = 1'000'000,
          .sync = sync,
          .checkpoint = "folder: 'checkpoints'",
          .more = "transport { shared_memory: OFF }"};
}

// Enters the network of the hosts. One per process.
inline VirtualNetwork EnterHosts(int num_hosts) {
  const absl::Status entered = VirtualNetwork::Enter();
  INFO(entered.ToString());
  REQUIRE(entered.ok());
  return VirtualNetwork(num_hosts);
}

// The ps have hosts 0, 1, ..., the standbys those after them.
inline void UseHosts(const VirtualNetwork& network, Cluster* cluster) {
  ClusterSpec spec = cluster->spec();
  int host = 0;
  const auto place = [&](Role role, size_t index, std::string* address) {
    cluster->PlaceOn(network, host, role, static_cast<int>(index));
    *address = absl::StrCat(VirtualNetwork::AddressOf(host++), ":2222");
  };
  for (size_t i = 0; i < spec.ps.size(); ++i) place(Role::kPs, i, &spec.ps[i]);
  for (size_t i = 0; i < spec.other_chiefs.size(); ++i) {
    place(Role::kChief, i + 1, &spec.other_chiefs[i]);
  }
  cluster->UseSpec(std::move(spec));
}

// What is dropped between the hosts of two tasks.
struct Cut {
  bool there;  // from the first one to the second
  bool back;

  void Apply(VirtualNetwork* network, int first, int second, bool is_blocked) const {
    if (there) network->SetBlocked(first, second, is_blocked);
    if (back) network->SetBlocked(second, first, is_blocked);
  }
};

inline constexpr Cut kCuts[] = {{true, true}, {true, false}, {false, true}};

// Whether steps are made now.
inline bool MakesSteps(Cluster* cluster, int chief = 0) {
  constexpr int kMoreThanOneUnderWay = 5;
  const auto status = FetchStatus(cluster->spec().AddressOf(Role::kChief, chief), kPatience);
  return status.ok() &&
         cluster->WaitForStep(status->global_step() + kMoreThanOneUnderWay, kPatience, chief);
}

// Stops the job that `chief` commands: its last model is that of a job of as many steps that
// nothing disturbs.
inline void CheckCostsNoBit(Cluster* cluster, int chief = 0) {
  const Ended stopped = RunToEnd(
      {Binary("deploy/cli/stop"), cluster->spec().AddressOf(Role::kChief, chief)}, kPatience);
  INFO(stopped.output << cluster->Logs());
  REQUIRE(stopped.exit_code == 0);
  const auto last = ResolveCheckpoint(cluster->folder().Path("checkpoints"));
  REQUIRE(last.ok());
  JobText job = EndlessJob();
  job.max_steps = static_cast<int>(ReadManifest(*last)->step);
  Cluster calm(static_cast<int>(cluster->spec().ps.size()), 2);
  calm.StartAll(job);
  Finish(calm);
  CHECK(TensorsOf(*last) ==
        TensorsOf(calm.folder().Path(absl::StrCat("checkpoints/ckpt-", job.max_steps))));
  CHECK_THAT(cluster->Logs(), !Catch::Contains("every ps goes back to "));
}

}  // namespace lockstep::test
