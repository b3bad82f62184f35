#include "common/config/known_cluster_specs.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr char kFirst[] = "chief a:1\nps 0 a:2\nps 1 a:3\nworker 0 a:4\n";
constexpr char kMoved[] = "chief a:1\nps 0 a:2\nps 1 b:3\nworker 0 a:4\n";
constexpr char kMovedTwice[] = "chief a:1\nps 0 c:2\nps 1 b:3\nworker 0 a:4\n";
constexpr char kOther[] = "chief x:1\nps 0 x:2\nps 1 x:3\nworker 0 x:4\n";

std::string Difference(const KnownClusterSpecs& ours, const std::vector<std::string>& theirs,
                       bool workers_may_differ = false) {
  const std::vector<absl::string_view> views(theirs.begin(), theirs.end());
  return ours.DifferenceFrom(views, workers_may_differ, "ours", "theirs");
}

TEST_CASE("processes belong together when one of their specs is the same, whichever is newer") {
  KnownClusterSpecs ours(kFirst);
  CHECK(Difference(ours, {kFirst}).empty());
  CHECK(Difference(ours, {kMoved}) == "ps 1 is a:3 in ours and b:3 in theirs");
  CHECK(Difference(ours, {kMoved, kFirst}).empty());
  CHECK(Difference(ours, {kMovedTwice, kMoved, kFirst}).empty());
  ours.Add(kMoved);
  CHECK(ours.texts() == std::vector<std::string>{kMoved, kFirst});
  CHECK(Difference(ours, {kFirst}).empty());
  CHECK(Difference(ours, {kMoved}).empty());
  CHECK(Difference(ours, {kMovedTwice, kMoved}).empty());
}

TEST_CASE("a process that never had one of our specs is of another cluster, whatever it has had") {
  KnownClusterSpecs ours(kFirst);
  ours.Add(kMoved);
  CHECK_FALSE(Difference(ours, {kOther}).empty());
  CHECK_FALSE(Difference(ours, {kMovedTwice, kOther}).empty());
  // The order of the ps.
  CHECK_FALSE(Difference(ours, {"chief a:1\nps 0 b:3\nps 1 a:2\nworker 0 a:4\n"}).empty());
  CHECK_FALSE(Difference(ours, {""}).empty());
  CHECK_FALSE(Difference(ours, {absl::StrCat(kMoved, kMoved), "\n"}).empty());
}

TEST_CASE("where workers come and go, their list is no difference, and all else is") {
  KnownClusterSpecs ours(kFirst);
  const auto difference = [&](const std::string& text) { return Difference(ours, {text}, true); };
  CHECK(difference("chief a:1\nps 0 a:2\nps 1 a:3\nworker 0 z:4\nworker 1 a:9\n").empty());
  CHECK(difference("chief a:1\nps 0 a:2\nps 1 a:3\n").empty());
  CHECK(difference(kMoved) == "ps 1 is a:3 in ours and b:3 in theirs");
  CHECK(difference("chief a:1\nps 0 a:2\nworker 0 a:4\n") == "ps 1 (a:3) is only in ours");
  CHECK_FALSE(difference("worker 0 a:4\n").empty());
  CHECK_FALSE(difference("").empty());
  CHECK_FALSE(difference(std::string(100'000, 'x')).empty());
}

TEST_CASE("a spec that comes back is the newest again") {
  KnownClusterSpecs ours(kFirst);
  ours.Add(kMoved);
  ours.Add(kFirst);
  CHECK(ours.texts() == std::vector<std::string>{kFirst, kMoved});
  // What others are told to be ours is what we have now.
  // The one that we have now is compared.
  const std::string difference = Difference(ours, {kMovedTwice});
  CHECK(difference.find("ps 1 is a:3 in ours and b:3 in theirs") != std::string::npos);
}

TEST_CASE("the newest specs are remembered, one that comes again is no other") {
  KnownClusterSpecs ours("0");
  for (const char* text : {"1", "2", "1", "2", "3"}) ours.Add(text);
  CHECK(ours.texts() == std::vector<std::string>{"3", "2", "1", "0"});
  ours.Add("4");
  CHECK(ours.texts() == std::vector<std::string>{"4", "3", "2", "1"});
  CHECK_FALSE(Difference(ours, {"0"}).empty());
}

}  // namespace
}  // namespace lockstep
