#include "tests/chaos/ledger.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr float kOnce = 0.5F;

// Three workers, of which a step needs two.
const Ledger& TwoOfThree() {
  static const Ledger ledger(3, 2);
  return ledger;
}

// What two steps leave: in step 0 replicas 0 and 2 were counted, in step 1 replicas 1 and 2.
std::vector<float> TwoSteps() {
  std::vector<float> values(Ledger::kMaxSteps * 3);
  for (const size_t row : {0, 2, 4, 5}) values[row] = kOnce;
  return values;
}

std::vector<std::string> Check(const std::vector<float>& values) {
  return TwoOfThree().Check("table", values, 2);
}

TEST_CASE("a ledger of which each step has counted what it needs is in order") {
  CHECK(Check(TwoSteps()).empty());
}

TEST_CASE("a ledger shows a gradient that is missing, and one of a step that is not closed") {
  std::vector<float> values = TwoSteps();
  values[4] = 0;
  REQUIRE(Check(values).size() == 1);
  CHECK_THAT(Check(values)[0], Contains("step 1 of 2 has counted 1 gradients, expected 2 to 3"));
  values[3] = values[4] = kOnce;
  CHECK(Check(values).empty());
  values[6] = kOnce;
  REQUIRE(Check(values).size() == 1);
  CHECK_THAT(Check(values)[0], Contains("step 2 of 2 has counted 1 gradients, expected 0"));
}

TEST_CASE("a ledger of which a step needs every worker shows each one that is missing") {
  std::vector<float> values(Ledger::kMaxSteps * 2);
  values[0] = values[1] = values[3] = kOnce;
  const std::vector<std::string> wrong = Ledger(2, 2).Check("table", values, 2);
  REQUIRE(wrong.size() == 1);
  CHECK_THAT(wrong[0], Contains("step 1 of 2 has counted 1 gradients, expected 2"));
}

TEST_CASE("a ledger shows a gradient that was counted in two steps") {
  std::vector<float> values = TwoSteps();
  values[2] = 0.875F;
  REQUIRE(Check(values).size() == 1);
  CHECK_THAT(Check(values)[0], Contains("replica 2 of step 0 has left 0.875, expected 0 or 0.5"));
}

TEST_CASE("a ledger shows a table of another size, and names no more than some defects") {
  CHECK(Check({1, 2, 3}).size() == 1);
  const size_t named = Check(std::vector<float>(Ledger::kMaxSteps * 3, kOnce)).size();
  CHECK(named >= 1);
  CHECK(named <= 13);
}

TEST_CASE("a ledger's example has the row of its replica and step") {
  const std::string csv = TwoOfThree().Csv();
  CHECK(absl::StartsWith(csv, "0,4\n1,4\n2,4\n3,4\n"));
  CHECK(absl::EndsWith(csv, "\n149999,4\n"));
}

}  // namespace
}  // namespace lockstep::test
