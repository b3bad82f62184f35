#include "common/client/fetch_plan.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

constexpr absl::Duration kStart = absl::Seconds(50);

// A plan that fetches the same targets over and over.
class Plan : public FetchPlan {
 public:
  explicit Plan(std::vector<Extent> targets, bool newest = false)
      : FetchPlan(Options(newest)), targets_(std::move(targets)) {}
  void Start(GlobalStep version, FetchKind kind = FetchKind::kPresent) {
    FetchPlan::Start(version, targets_, kind);
  }

 private:
  static SessionOptions Options(bool newest) {
    SessionOptions options;
    options.fetch_chunk_bytes = 100;
    options.window = 2;
    options.patience = absl::Seconds(10);
    options.asynchronous = newest;
    return options;
  }
  const std::vector<Extent> targets_;
};

Plan MakePlan(const std::vector<uint64_t>& sizes, bool newest = false) {
  std::vector<FetchPlan::Extent> targets;
  for (const uint64_t size : sizes) targets.push_back({.units = size});
  return Plan(std::move(targets), newest);
}

FetchPlan::Outgoing MustSend(FetchPlan* plan, absl::Duration now = kStart) {
  const auto outgoing = plan->Next(now);
  REQUIRE(outgoing.has_value());
  return *outgoing;
}

using Requests = std::vector<std::vector<std::vector<uint64_t>>>;

// The requests of a fetch that was started: target, first unit and number of units of each piece.
Requests Serve(FetchPlan* plan, GlobalStep version) {
  Requests requests;
  while (const auto outgoing = plan->Next(kStart)) {
    requests.emplace_back();
    for (const FetchPlan::Piece& piece : plan->pieces(outgoing->request))
      requests.back().push_back({piece.target, piece.first, piece.count});
    plan->OnReply(outgoing->request, version);
  }
  return requests;
}

TEST_CASE("Large targets are pulled in chunks, small ones together, empty ones not at all") {
  Plan plan = MakePlan({250, 30, 0, 20, 60, 100});
  plan.Start(GlobalStep(1));
  CHECK(Serve(&plan, GlobalStep(1)) == Requests{{{0, 0, 100}},
                                                {{0, 100, 100}},
                                                {{0, 200, 50}, {1, 0, 30}, {3, 0, 20}},
                                                {{4, 0, 60}},
                                                {{5, 0, 100}}});
  CHECK(**plan.Result() == GlobalStep(1));
}

TEST_CASE("Rows are cut into chunks by what they weigh, never in the middle") {
  // Two and a half rows of 40 bytes to a chunk; a row that is larger than one goes alone.
  Plan plan({{.units = 5, .unit_bytes = 40}, {.units = 20}, {.units = 2, .unit_bytes = 101}});
  plan.Start(GlobalStep(1));
  CHECK(Serve(&plan, GlobalStep(1)) ==
        Requests{{{0, 0, 2}}, {{0, 2, 2}}, {{0, 4, 1}, {1, 0, 20}}, {{2, 0, 1}}, {{2, 1, 1}}});
  CHECK(**plan.Result() == GlobalStep(1));
}

TEST_CASE("What travels in half the width shares requests with its like, between what does not") {
  const FetchPlan::Extent narrow{.units = 15, .unit_bytes = 2, .is_narrow = true};
  const FetchPlan::Extent wide{.units = 20};
  Plan plan({narrow, wide, narrow, wide, {.units = 60, .unit_bytes = 2, .is_narrow = true}});
  plan.Start(GlobalStep(1));
  CHECK(Serve(&plan, GlobalStep(1)) ==
        Requests{{{0, 0, 15}, {2, 0, 15}}, {{1, 0, 20}, {3, 0, 20}}, {{4, 0, 50}}, {{4, 50, 10}}});
  CHECK(**plan.Result() == GlobalStep(1));
  plan.Start(GlobalStep(2));
  const auto first = MustSend(&plan), second = MustSend(&plan);
  CHECK(first.is_narrow);
  CHECK_FALSE(second.is_narrow);
}

TEST_CASE("Each fetch is cut anew, with more requests than the one before or fewer") {
  Plan unused = MakePlan({});
  FetchPlan& plan = unused;
  for (const uint64_t rows : {3, 0, 7, 1}) {
    const std::vector<FetchPlan::Extent> targets = {{.units = rows, .unit_bytes = 100}};
    plan.Start(GlobalStep(1), targets, FetchKind::kPresent);
    CHECK(Serve(&plan, GlobalStep(1)).size() == rows);
    REQUIRE(plan.Result().has_value());
    CHECK(**plan.Result() == GlobalStep(1));
  }
}

TEST_CASE("What is still to come is asked for at once, and comes in any order") {
  Plan plan = MakePlan({250, 100});
  plan.Start(GlobalStep(1), FetchKind::kAhead);
  std::vector<size_t> requests;
  while (const auto outgoing = plan.Next(kStart)) requests.push_back(outgoing->request);
  CHECK(requests == std::vector<size_t>{0, 1, 2, 3});
  // One that waited too long is repeated, beside the others.
  plan.OnError(2, absl::DeadlineExceededError("parked"), kStart);
  CHECK(MustSend(&plan).request == 2);
  for (const size_t request : {3, 1, 0, 2}) {
    CHECK(!plan.Result().has_value());
    plan.OnReply(request, GlobalStep(1));
  }
  CHECK(**plan.Result() == GlobalStep(1));
  plan.Start(GlobalStep(2));
  MustSend(&plan);
  MustSend(&plan);
  CHECK(!plan.Next(kStart).has_value());
}

TEST_CASE("The newest values may differ in version, and the lowest is told") {
  Plan plan = MakePlan({100, 100, 100}, /*newest=*/true);
  plan.Start(GlobalStep(7));
  const auto first = MustSend(&plan), second = MustSend(&plan);
  plan.OnReply(first.request, GlobalStep(12));
  plan.OnReply(second.request, GlobalStep(9));
  const auto third = MustSend(&plan);
  // Never a version that a grant keeps: that would not be the newest.
  for (const auto& outgoing : {first, second, third}) CHECK(outgoing.version == GlobalStep(0));
  plan.OnReply(third.request, GlobalStep(30));
  CHECK(**plan.Result() == GlobalStep(9));
  // Another fetch knows nothing of this one.
  plan.Start(GlobalStep(9));
  Serve(&plan, GlobalStep(31));
  CHECK(**plan.Result() == GlobalStep(31));
}

TEST_CASE("A fetch of nothing has the version given, also of the newest") {
  Plan plan = MakePlan({0}, /*newest=*/true);
  plan.Start(GlobalStep(3));
  CHECK_FALSE(plan.Next(kStart).has_value());
  CHECK(**plan.Result() == GlobalStep(3));
}

TEST_CASE("A fetch of nothing has the version asked for") {
  Plan plan = MakePlan({0});
  plan.Start(GlobalStep(3));
  CHECK_FALSE(plan.Next(kStart).has_value());
  CHECK(**plan.Result() == GlobalStep(3));
}

TEST_CASE("A newer version makes the whole fetch one of that version") {
  Plan plan = MakePlan({100, 100, 100});
  plan.Start(GlobalStep(5));
  const auto first = MustSend(&plan), second = MustSend(&plan);
  CHECK_FALSE(plan.Next(kStart).has_value());  // window
  plan.OnReply(first.request, GlobalStep(5));
  const auto third = MustSend(&plan);
  plan.OnReply(third.request, GlobalStep(9));  // 5 is kept no longer
  const auto again = MustSend(&plan);
  CHECK(again.request == first.request);
  CHECK(again.version == GlobalStep(9));
  plan.OnReply(second.request, GlobalStep(5));  // sent before: out of date
  plan.OnReply(again.request, GlobalStep(9));
  CHECK_FALSE(plan.Result().has_value());
  const auto last = MustSend(&plan);
  CHECK(last.request == second.request);
  plan.OnReply(last.request, GlobalStep(9));
  CHECK(**plan.Result() == GlobalStep(9));
}

TEST_CASE("A plan serves one fetch after another") {
  Plan plan = MakePlan({100, 100});
  for (int64_t version : {1, 2, 3}) {
    plan.Start(GlobalStep(version));
    while (const auto outgoing = plan.Next(kStart)) {
      CHECK(outgoing->version == GlobalStep(version));
      plan.OnReply(outgoing->request, GlobalStep(version));
    }
    CHECK(**plan.Result() == GlobalStep(version));
  }
}

TEST_CASE("A parked request that reaches its deadline is issued again at once, for ever") {
  Plan plan = MakePlan({100});
  plan.Start(GlobalStep(1));
  absl::Duration now = kStart;
  for (int i = 0; i < 100; ++i) {
    const auto outgoing = MustSend(&plan, now);
    now += absl::Seconds(60);
    plan.OnError(outgoing.request, absl::DeadlineExceededError("parked"), now);
    CHECK_FALSE(plan.Result().has_value());
  }
}

TEST_CASE("Requests that were refused come again a window at a time") {
  Plan plan = MakePlan({1000});
  plan.Start(GlobalStep(1), FetchKind::kAhead);
  std::vector<size_t> sent;
  while (const auto outgoing = plan.Next(kStart)) sent.push_back(outgoing->request);
  REQUIRE(sent.size() == 10);
  for (size_t i = 2; i < sent.size(); ++i) {
    plan.OnError(sent[i], absl::ResourceExhaustedError("unread"), kStart);
  }
  CHECK_FALSE(plan.Next(kStart).has_value());
  // For each answer one more is sent: two are in flight.
  plan.OnReply(sent[0], GlobalStep(1));
  CHECK(plan.Next(kStart).has_value());
  CHECK_FALSE(plan.Next(kStart).has_value());
  plan.OnReply(sent[1], GlobalStep(1));
  CHECK(plan.Next(kStart).has_value());
  CHECK_FALSE(plan.Next(kStart).has_value());
}

TEST_CASE("An unreachable ps is tried with pauses until patience is over") {
  Plan plan = MakePlan({100});
  plan.Start(GlobalStep(1));
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
  Plan plan = MakePlan({100, 100});
  plan.Start(GlobalStep(1));
  const auto first = MustSend(&plan), second = MustSend(&plan);
  plan.OnError(first.request, absl::AbortedError("epoch"), kStart);
  CHECK_FALSE(plan.Result().has_value());
  CHECK_FALSE(plan.Next(kStart).has_value());
  plan.OnError(second.request, absl::AbortedError("other"), kStart);
  CHECK(absl::IsAborted(plan.Result()->status()));
  plan.Start(GlobalStep(1));
  CHECK(plan.Next(kStart).has_value());
}

TEST_CASE("An older version than asked for is an error") {
  Plan plan = MakePlan({100});
  plan.Start(GlobalStep(4));
  plan.OnReply(MustSend(&plan).request, GlobalStep(3));
  CHECK(plan.Result()->status().code() == absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace lockstep
