#include "chief/job/copy_watch.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "chief/job/job_facts.h"

namespace lockstep::chief {
namespace {

using Shards = std::vector<ShardPlace>;

ShardPlace Place(const std::string& address, const std::string& other) {
  ShardPlace place;
  place.set_address(address);
  place.set_other_address(other);
  return place;
}

std::vector<ShardFacts> Describe(const CopyWatch& watch, const Shards& shards, absl::Duration now) {
  JobFacts facts{.now = now, .shards = std::vector<ShardFacts>(shards.size())};
  watch.Describe(shards, &facts);
  return facts.shards;
}

TEST_CASE("the time without a copy counts from when a shard was first seen without") {
  const Shards whole = {Place("a:1", "b:2"), Place("b:1", "a:2")};
  const Shards moved = {Place("b:2", ""), Place("b:1", "a:2")};
  CopyWatch watch;
  watch.Update(whole, absl::Seconds(1));
  auto facts = Describe(watch, whole, absl::Seconds(2));
  CHECK(facts[0].place.address() == "a:1");
  CHECK(facts[0].place.other_address() == "b:2");
  CHECK(facts[0].without_copy == absl::ZeroDuration());

  watch.Update(moved, absl::Seconds(3));
  watch.Update(moved, absl::Seconds(4));
  facts = Describe(watch, moved, absl::Seconds(8));
  CHECK(facts[0].place.address() == "b:2");
  CHECK(facts[0].without_copy == absl::Seconds(5));
  CHECK(facts[1].without_copy == absl::ZeroDuration());

  watch.Update(whole, absl::Seconds(9));
  watch.Update(moved, absl::Seconds(10));
  CHECK(Describe(watch, moved, absl::Seconds(11))[0].without_copy == absl::Seconds(1));
}

TEST_CASE("what has changed since the last look is told at once") {
  CopyWatch watch;
  const Shards moved = {Place("b:2", "")};
  CHECK(Describe(watch, moved, absl::Seconds(1))[0].place.address() == "b:2");
  watch.Update({Place("a:1", "b:2")}, absl::Seconds(1));
  CHECK(Describe(watch, moved, absl::Seconds(2))[0].without_copy == absl::ZeroDuration());
  watch.Update(moved, absl::Seconds(2));
  const Shards mended = {Place("b:2", "a:1")};
  CHECK(Describe(watch, mended, absl::Seconds(5))[0].without_copy == absl::ZeroDuration());
}

}  // namespace
}  // namespace lockstep::chief
