// The shards of a job with three ps: who keeps whose copy, when one of the ps is lost and comes
// back.
#include "chief/copies/job_pairs.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/chief/copies/pair_fixture.h"

namespace lockstep::chief {
namespace {

struct JobPairsFixture {
  JobPairsFixture() {
    for (uint32_t i = 0; i < ps.size(); ++i) ps[i].copy_port = 7000 + i;
  }

  // What a chief does first, with every shard.
  void Begin() {
    for (size_t shard = 0; shard < ps.size(); ++shard) {
      Call(shard, kGetView, GetViewRequest());
      SetViewRequest view;
      view.mutable_command()->set_job(7);
      view.mutable_command()->set_term(1);
      view.set_epoch(1);
      view.set_shard(static_cast<uint32_t>(shard));
      Call(shard, kSetView, view);
      Call(shard, kCreateVariables, CreateVariablesRequest());
    }
  }
  template <typename Request, typename Reply>
  void Call(size_t shard, const PsMethod<Request, Reply>& method, const Request& request) {
    absl::Status status = absl::DeadlineExceededError("not answered");
    pairs.shards()[shard]->Call(
        method, request, [&](const absl::StatusOr<Reply>& reply) { status = reply.status(); });
    executor.Run();
    CAPTURE(shard, method.path, status.ToString());
    REQUIRE(status.ok());
  }
  void Pass(absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(100)) {
      clock.Advance(absl::Milliseconds(100));
      pairs.Tick();
      executor.Run();
    }
  }
  // By shard: "serving address, other address".
  std::vector<std::string> Places() const {
    std::vector<std::string> places;
    for (const ShardPlace& place : pairs.places()) {
      places.push_back(absl::StrCat(place.address(), ", ", place.other_address()));
    }
    return places;
  }

  std::vector<SimplePs> ps = std::vector<SimplePs>(3);
  std::map<std::string, SimplePs> copies;  // by address
  std::map<std::string, size_t> shard_of;  // by address of the copy server
  ManualExecutor executor;
  ManualClock clock;
  JobPairs pairs{{.ps_addresses = {"a:1", "b:1", "c:1"},
                  .patience = absl::Seconds(2),
                  .connect =
                      [this](size_t shard, const std::string& address) {
                        shard_of[address] = shard;
                        return std::make_unique<ConnectionTo>(&copies[address]);
                      }},
                 {&ps[0], &ps[1], &ps[2]},
                 &executor,
                 &clock};
};

const std::vector<std::string> kWholeJob = {"a:1, b:7001", "b:1, c:7002", "c:1, a:7000"};

TEST_CASE("the copy of each shard is at the next ps, that of the last one at the first") {
  JobPairsFixture f;
  f.Begin();
  CHECK(f.Places() == kWholeJob);
  CHECK(f.shard_of == std::map<std::string, size_t>{{"b:7001", 0}, {"c:7002", 1}, {"a:7000", 2}});
}

TEST_CASE("of three ps one is lost, and keeps both of its new copies when it is back") {
  JobPairsFixture f;
  f.Begin();
  f.ps[2].is_away = f.copies["c:7002"].is_away = true;
  f.Pass(absl::Seconds(1));
  CHECK(f.Places() == std::vector<std::string>{"a:1, b:7001", "b:1, ", "a:7000, "});
  const bool has_moved = GENERATE(false, true);
  CAPTURE(has_moved);
  f.ps[2].StartAgain();
  f.ps[2].copy_port = 7009;
  if (has_moved) f.pairs.SetAddresses({"a:1", "b:1", "d:1"});
  const std::string home = has_moved ? "d:1" : "c:1";
  const std::string host = has_moved ? "d:7009" : "c:7009";
  f.Pass(absl::Seconds(1));
  CHECK(f.shard_of.at(host) == 1);
  CHECK(f.ps[1].orders.back().copy_address() == host);
  CHECK(f.copies["a:7000"].orders.back().copy_address() == home);
  // Each has its state at a time of its own, and counts from then on.
  f.copies[host].state.set_awaits_state(false);
  f.Pass(absl::Seconds(1));
  CHECK(f.Places() == std::vector<std::string>{"a:1, b:7001", "b:1, " + host, "a:7000, "});
  f.ps[2].state.set_awaits_state(false);
  f.Pass(absl::Seconds(1));
  CHECK(f.Places() == std::vector<std::string>{"a:1, b:7001", "b:1, " + host, "a:7000, " + home});
  // The shard whose ps were there all the time has had no order about a copy.
  CHECK(f.ps[0].orders.size() == 1);
}

}  // namespace
}  // namespace lockstep::chief
