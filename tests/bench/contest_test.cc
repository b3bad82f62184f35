#include "tests/bench/contest.h"

#include <catch2/catch.hpp>

namespace lockstep::bench {
namespace {

using Catch::Matchers::Contains;

// Two sides of ours, one peer that runs, one that is absent and one that fails in its second turn.
struct Example {
  int runs[4] = {};
  Contest contest;

  std::vector<std::string> rows() const {
    std::vector<std::string> names;
    for (const Comparison& comparison : contest.comparisons) names.push_back(comparison.row);
    return names;
  }

  Example() {
    const auto counts = [this](int side, double value) {
      return [this, side, value]() -> absl::StatusOr<double> { return ++runs[side], value; };
    };
    contest.unit = "ms";
    contest.sides = {{"fast", "", counts(0, 10)},
                     {"slow", "", counts(1, 40)},
                     {"peer", "The Peer", counts(2, 20)},
                     {"absent", "Somebody", counts(2, 20), "not installed. Remedy: install it"},
                     {"broken", "Breaks", [this]() -> absl::StatusOr<double> {
                        return ++runs[3] < 2 ? absl::StatusOr<double>(1.0)
                                             : absl::UnavailableError("ended");
                      }}};
    contest.comparisons = {{"fast/peer", "fast", "peer", 1.9},
                           {"slow/peer", "slow", "peer", 1.9},
                           {"fast/absent", "fast", "absent", 1},
                           {"fast/broken", "fast", "broken", 1}};
  }
};

TEST_CASE("a contest is a group of its rows, made anew with the options of the run") {
  Example example;
  int rounds = 0;
  const RowGroup group = AsGroup([&](const BenchOptions& options) {
    rounds = options.rounds;
    return example.contest;
  });
  CHECK(group.names == example.rows());
  BenchOptions options;
  options.rounds = 2;
  std::vector<RowResult> results;
  CHECK(group.run(options, {"fast/peer"}, &results).ok());
  CHECK(results.size() == 1);
  CHECK(rounds == 2);
  CHECK(example.runs[0] == 2);
}

TEST_CASE("rows compare sides that were measured once for all of them") {
  Example example;
  std::vector<RowResult> results;
  REQUIRE(Run(example.contest, 3, example.rows(), &results).ok());
  REQUIRE(results.size() == 4);
  const RowResult& fast = results[0];
  CHECK(fast.name == "fast/peer");
  CHECK(fast.value == 10);
  CHECK(fast.peer == "The Peer");
  CHECK(*fast.ratio() == 2);
  CHECK(fast.met() == true);
  CHECK(results[1].met() == false);
  for (int side : {0, 1, 2}) CHECK(example.runs[side] == 3);
}

TEST_CASE("a peer that is absent or fails is told and not met, and the others go on") {
  Example example;
  std::vector<RowResult> results;
  REQUIRE(Run(example.contest, 3, example.rows(), &results).ok());
  for (int row : {2, 3}) {
    CHECK(results[row].value == 10);
    CHECK_FALSE(results[row].peer_value.has_value());
    CHECK(results[row].met() == false);
  }
  CHECK_THAT(results[2].peer, Contains("none, Somebody: not installed. Remedy: install it"));
  CHECK_THAT(results[3].peer, Contains("none, Breaks: ended"));
  CHECK(example.runs[3] == 2);
}

TEST_CASE("only what the wanted rows compare is measured") {
  Example example;
  std::vector<RowResult> results;
  REQUIRE(Run(example.contest, 3, {"slow/peer"}, &results).ok());
  CHECK(results.size() == 1);
  CHECK(example.runs[0] == 0);
  CHECK(example.runs[3] == 0);
}

TEST_CASE("a side of ours that fails is an error, and the other rows are there") {
  Example example;
  example.contest.sides[1].measure = [] { return absl::InternalError("no"); };
  std::vector<RowResult> results;
  const absl::Status failure = Run(example.contest, 3, {"fast/peer", "slow/peer"}, &results);
  CHECK(failure.message() == "slow/peer: no");
  REQUIRE(results.size() == 1);
  CHECK(results[0].met() == true);
}

}  // namespace
}  // namespace lockstep::bench
