// The frame of the benchmark itself: medians, turns, peers and what is said without one.
#include <catch2/catch.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/bench/interleave.h"
#include "tests/bench/peer_process.h"
#include "tests/bench/report.h"

namespace lockstep::bench {
namespace {

TEST_CASE("the median is the middle, or the mean of the middle two") {
  CHECK(Median({3}) == 3);
  CHECK(Median({9, 1, 5}) == 5);
  CHECK(Median({4, 1, 100, 2}) == 3);
}

TEST_CASE("sides take turns and change who goes first") {
  std::string order;
  double value = 0;
  const absl::StatusOr<Medians> medians = Interleave(
      3,
      [&] {
        order += 'a';
        return ++value;
      },
      [&] {
        order += 'b';
        return 10 * ++value;
      });
  REQUIRE(medians.ok());
  CHECK(order == "abbaab");
  CHECK(medians->ours == 4);     // of 1, 4, 5
  CHECK(medians->theirs == 30);  // of 20, 30, 60
}

TEST_CASE("an error of either side ends the measurement") {
  int runs = 0;
  const Measure fails = [&]() -> absl::StatusOr<double> {
    return ++runs < 2 ? absl::StatusOr<double>(1.0) : absl::UnavailableError("gone");
  };
  const Measure works = [] { return 1.0; };
  CHECK(absl::IsUnavailable(Interleave(9, works, fails).status()));
  CHECK(runs == 2);
  CHECK(absl::IsUnavailable(MedianOf(9, fails).status()));
}

TEST_CASE("the ratio says how good we are, whichever way the unit points") {
  RowResult row{.value = 200, .peer_value = 100, .target = 1.5};
  CHECK(*row.ratio() == 2);
  CHECK(row.met() == true);
  row.higher_is_better = false;
  CHECK(*row.ratio() == 0.5);
  CHECK(row.met() == false);
  row.peer_value.reset();
  CHECK(!row.ratio().has_value());
  CHECK(row.met() == false);
}

TEST_CASE("without a peer the table has dashes and the JSON has nulls") {
  const RowResult row{
      .name = "a_row", .value = 123.456, .unit = "steps/s", .peer = "none", .target = 0.8};
  std::ostringstream table;
  PrintRow(table, row);
  CHECK_THAT(table.str(), Catch::Contains("123 steps/s") && Catch::Contains(" - ") &&
                              Catch::Contains("0.800") && Catch::Contains("no"));
  const nlohmann::json json = RowJson(row);
  CHECK(json["row"] == "a_row");
  CHECK(json["value"] == 123.456);
  CHECK(json["peer_value"].is_null());
  CHECK(json["ratio"].is_null());
  CHECK(json["met"] == false);
  CHECK(MachineJson()["cpus"] >= 1);
}

TEST_CASE("a row without a target is neither met nor not met") {
  const RowResult row{.name = "a_row", .value = 200, .peer_value = 100, .target = std::nullopt};
  CHECK(*row.ratio() == 2);
  CHECK_FALSE(row.met().has_value());
  std::ostringstream table;
  PrintRow(table, row);
  CHECK_THAT(table.str(), !Catch::Contains("yes") && !Catch::Contains("no"));
  const nlohmann::json json = RowJson(row);
  CHECK(json["ratio"] == 2);
  CHECK(json["target"].is_null());
  CHECK(json["met"].is_null());
}

TEST_CASE("a peer answers line by line") {
  absl::StatusOr<std::unique_ptr<PeerProcess>> peer = PeerProcess::Start({"/bin/cat"});
  REQUIRE(peer.ok());
  for (int i = 0; i < 3; ++i) {
    const absl::StatusOr<std::string> answer = (*peer)->Ask(absl::StrCat("line ", i));
    REQUIRE(answer.ok());
    CHECK(*answer == absl::StrCat("line ", i));
  }
}

TEST_CASE("a peer that is missing or ends is an error, not a signal") {
  CHECK(absl::IsNotFound(PeerProcess::Start({"/no/such/program"}).status()));
  absl::StatusOr<std::unique_ptr<PeerProcess>> peer = PeerProcess::Start({"/bin/true"});
  REQUIRE(peer.ok());
  for (int i = 0; i < 2; ++i) CHECK(absl::IsUnavailable((*peer)->Ask("hello").status()));
}

}  // namespace
}  // namespace lockstep::bench
