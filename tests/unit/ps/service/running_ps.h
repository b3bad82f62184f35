// A ps that listens, and what it has told its process.
#pragma once

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/client/ps_control.h"
#include "ps/service/ps_server.h"
#include "tests/conformance/small_job.h"
#include "tests/support/await.h"
#include "tests/support/ps_data.h"

namespace lockstep::ps {

class RunningPs {
 public:
  explicit RunningPs(std::string address = "127.0.0.1:0", uint32_t task_index = 0) {
    auto server = PsServer::Start(
        &shard_, {.address = address,
                  .identity = {.task_index = task_index,
                               .clusters = std::make_shared<KnownClusterSpecs>(kTestCluster),
                               .incarnation = Incarnation(3)},
                  .events = {.called_by_chief = [this] { ++chief_calls; },
                             .created = [this] { ++created; },
                             .finished =
                                 [this](const JobEnd& job_end) {
                                   end = job_end;
                                   finished.Notify();
                                 }}});
    REQUIRE(server.ok());
    server_ = *std::move(server);
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", server_->port()); }
  ClientOptions client() const { return {.address = address(), .name = "ps 0"}; }
  Shard& shard() { return shard_; }
  PsServer& server() { return *server_; }

  void CreateVariables(const std::vector<int64_t>& sizes) {
    const auto control = MakePsControl(client());
    REQUIRE(CallAndWait(*control, kSetView, TwoWorkers()).ok());
    REQUIRE(CallAndWait(*control, kCreateVariables, Variables(sizes)).ok());
  }

  std::atomic<int> chief_calls = 0, created = 0;
  JobEnd end;
  absl::Notification finished;

 private:
  Shard shard_{ShardOptions{}};
  std::unique_ptr<PsServer> server_;
};

}  // namespace lockstep::ps
