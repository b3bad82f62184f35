#include "common/client/pull_plan.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

constexpr absl::Duration kStart = absl::Seconds(50);

PullPlan MakePlan(const std::vector<uint64_t>& sizes) {
  PullerOptions options;
  options.chunk_bytes = 100;
  options.window = 2;
  options.patience = absl::Seconds(10);
  return PullPlan(options, sizes);
}

PullPlan::Outgoing MustSend(PullPlan* plan, absl::Duration now = kStart) {
  const auto outgoing = plan->Next(now);
  REQUIRE(outgoing.has_value());
  return *outgoing;
}

TEST_CASE("Large targets are pulled in chunks, small ones together, empty ones not at all") {
  PullPlan plan = MakePlan({250, 30, 0, 20, 60, 100});
  plan.Start(GlobalStep(1), kStart);
  std::vector<std::vector<std::vector<uint64_t>>> requests;
  while (const auto outgoing = plan.Next(kStart)) {
    requests.emplace_back();
    for (const PullPlan::Piece& piece : plan.pieces(outgoing->request))
      requests.back().push_back({piece.target, piece.offset, piece.size});
    plan.OnReply(outgoing->request, GlobalStep(1), kStart);
  }
  using Requests = std::vector<std::vector<std::vector<uint64_t>>>;
  CHECK(requests == Requests{{{0, 0, 100}},
                             {{0, 100, 100}},
                             {{0, 200, 50}, {1, 0, 30}, {3, 0, 20}},
                             {{4, 0, 60}},
                             {{5, 0, 100}}});
  CHECK(**plan.Result() == GlobalStep(1));
}

TEST_CASE("A fetch of nothing has the version asked for") {
  PullPlan plan = MakePlan({0});
  plan.Start(GlobalStep(3), kStart);
  CHECK_FALSE(plan.Next(kStart).has_value());
  CHECK(**plan.Result() == GlobalStep(3));
}

TEST_CASE("A newer version makes the whole fetch one of that version") {
  PullPlan plan = MakePlan({100, 100, 100});
  plan.Start(GlobalStep(5), kStart);
  const auto first = MustSend(&plan), second = MustSend(&plan);
  CHECK_FALSE(plan.Next(kStart).has_value());  // window
  plan.OnReply(first.request, GlobalStep(5), kStart);
  const auto third = MustSend(&plan);
  plan.OnReply(third.request, GlobalStep(9), kStart);  // 5 is kept no longer
  const auto again = MustSend(&plan);
  CHECK(again.request == first.request);
  CHECK(again.version == GlobalStep(9));
  plan.OnReply(second.request, GlobalStep(5), kStart);  // sent before: out of date
  plan.OnReply(again.request, GlobalStep(9), kStart);
  CHECK_FALSE(plan.Result().has_value());
  const auto last = MustSend(&plan);
  CHECK(last.request == second.request);
  plan.OnReply(last.request, GlobalStep(9), kStart);
  CHECK(**plan.Result() == GlobalStep(9));
}

TEST_CASE("A plan serves one fetch after another") {
  PullPlan plan = MakePlan({100, 100});
  for (int64_t version : {1, 2, 3}) {
    plan.Start(GlobalStep(version), kStart);
    while (const auto outgoing = plan.Next(kStart)) {
      CHECK(outgoing->version == GlobalStep(version));
      plan.OnReply(outgoing->request, GlobalStep(version), kStart);
    }
    CHECK(**plan.Result() == GlobalStep(version));
  }
}

TEST_CASE("A parked request that reaches its deadline is issued again at once, for ever") {
  PullPlan plan = MakePlan({100});
  plan.Start(GlobalStep(1), kStart);
  absl::Duration now = kStart;
  for (int i = 0; i < 100; ++i) {
    const auto outgoing = MustSend(&plan, now);
    now += absl::Seconds(60);
    plan.OnError(outgoing.request, absl::DeadlineExceededError("parked"), now);
    CHECK_FALSE(plan.Result().has_value());
  }
}

TEST_CASE("An unreachable ps is tried with pauses until patience is over") {
  PullPlan plan = MakePlan({100});
  plan.Start(GlobalStep(1), kStart);
  absl::Duration now = kStart;
  int tries = 0;
  while (!plan.Result().has_value()) {
    const auto outgoing = MustSend(&plan, now);
    plan.OnError(outgoing.request, absl::UnavailableError("gone"), now);
    ++tries;
    if (plan.Result().has_value()) break;
    CHECK_FALSE(plan.Next(now).has_value());
    REQUIRE(*plan.WakeAt() > now);
    now = *plan.WakeAt();
  }
  CHECK(tries > 10);
  CHECK(now - kStart < absl::Seconds(12));
  CHECK(plan.Result()->status() == absl::UnavailableError("gone (tried for 10s)"));
}

TEST_CASE("A final error waits for what is in flight, and the next fetch starts clean") {
  PullPlan plan = MakePlan({100, 100});
  plan.Start(GlobalStep(1), kStart);
  const auto first = MustSend(&plan), second = MustSend(&plan);
  plan.OnError(first.request, absl::AbortedError("epoch"), kStart);
  CHECK_FALSE(plan.Result().has_value());
  CHECK_FALSE(plan.Next(kStart).has_value());
  plan.OnError(second.request, absl::AbortedError("other"), kStart);
  CHECK(absl::IsAborted(plan.Result()->status()));
  plan.Start(GlobalStep(1), kStart);
  CHECK(plan.Next(kStart).has_value());
}

TEST_CASE("An older version than asked for is an error") {
  PullPlan plan = MakePlan({100});
  plan.Start(GlobalStep(4), kStart);
  plan.OnReply(MustSend(&plan).request, GlobalStep(3), kStart);
  CHECK(plan.Result()->status().code() == absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace lockstep
