#include "tests/chaos/schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::test {
namespace {

bool SameFault(const Fault& a, const Fault& b) {
  return SameRow(a, b) && a.index == b.index && a.peer_index == b.peer_index && a.lasts == b.lasts;
}

TEST_CASE("a seed gives the same faults at the same moments again, another seed others") {
  Schedule first(7, 2, 2, AllFaults()), again(7, 2, 2, AllFaults()), other(8, 2, 2, AllFaults());
  bool differs = false;
  for (int round = 0; round < 200; ++round) {
    const auto a = first.Next(), b = again.Next(), c = other.Next();
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i) CHECK(SameFault(a[i], b[i]));
    differs = differs || !SameFault(a[0], c[0]);
    CHECK(first.NextWait() == again.NextWait());
    other.NextWait();
  }
  CHECK(differs);
}

TEST_CASE("every fault comes, at every task that it can hit, and lasts if it can") {
  Schedule schedule(1, 2, 3, AllFaults());
  std::map<std::pair<FaultKind, FaultTarget>, std::set<int>> seen;
  for (int round = 0; round < 500; ++round) {
    for (const Fault& fault : schedule.Next()) {
      seen[{fault.kind, fault.target}].insert(fault.index);
      CHECK(Lasts(fault.kind) == (fault.lasts > absl::ZeroDuration()));
    }
  }
  CHECK(seen.size() == AllFaults().size());
  for (const auto& [fault, indices] : seen) {
    const size_t expected = MayOverlap(fault.second, FaultTarget::kPs) ? 2
                            : fault.second == FaultTarget::kWorker     ? 3
                                                                       : 1;
    CHECK(indices.size() == expected);
  }
}

TEST_CASE("as many rounds as there are faults leave none out, whatever the seed") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Schedule schedule(seed, 2, 2, AllFaults());
    std::set<std::pair<FaultKind, FaultTarget>> seen;
    size_t faults = 0;
    while (faults < AllFaults().size()) {
      for (const Fault& fault : schedule.Next()) {
        seen.insert({fault.kind, fault.target});
        ++faults;
      }
    }
    // A pair may draw its second fault from the next turn.
    CHECK(seen.size() + 1 >= AllFaults().size());
  }
}

TEST_CASE("between hosts every pair of tasks that talk is cut, in each direction") {
  Schedule schedule(5, 2, 2, FaultsOfHosts(/*has_copies=*/true));
  std::set<std::string> cut;
  for (int round = 0; round < 1000; ++round) {
    for (const Fault& fault : schedule.Next()) {
      if (fault.kind != FaultKind::kOneWayPartition) continue;
      cut.insert(absl::StrCat(NameOf(fault.target), fault.index, ArrowOf(fault.kind),
                              NameOf(*fault.peer), fault.peer_index));
    }
  }
  for (const char* const pair :
       {"worker0 -> ps1", "ps0 -> worker1", "worker1 -> chief0", "chief0 -> worker0",
        "chief0 -> ps0", "ps1 -> chief0", "standby0 -> ps0", "ps1 -> ps0", "ps0 -> ps1"}) {
    CAPTURE(pair);
    CHECK(cut.contains(pair));
  }
  CHECK_FALSE(cut.contains("ps0 -> ps0"));
}

TEST_CASE("a partition of hosts may last longer than it takes to notice it") {
  Schedule schedule(6, 2, 2, FaultsOfHosts(/*has_copies=*/false));
  std::map<FaultKind, absl::Duration> longest;
  for (int round = 0; round < 1000; ++round) {
    for (const Fault& fault : schedule.Next()) {
      longest[fault.kind] = std::max(longest[fault.kind], fault.lasts);
    }
  }
  for (const FaultKind kind :
       {FaultKind::kHostGone, FaultKind::kPairPartition, FaultKind::kOneWayPartition}) {
    CHECK(longest[kind] > absl::Seconds(4));
  }
  CHECK(longest[FaultKind::kStop] < absl::Seconds(3));
}

TEST_CASE("two faults of one round never hit the same task") {
  const auto among = GENERATE(AllFaults(), FaultsOfHosts(/*has_copies=*/true));
  Schedule schedule(3, 2, 2, among);
  int pairs = 0;
  for (int round = 0; round < 1000; ++round) {
    const auto faults = schedule.Next();
    REQUIRE((faults.size() == 1 || faults.size() == 2));
    if (faults.size() == 1) continue;
    ++pairs;
    CHECK_FALSE(MayOverlap(faults[0], faults[1]));
    CHECK_FALSE(MayOverlap(faults[0].target, faults[1].target));
  }
  CHECK(pairs > 50);
}

TEST_CASE("where no process is to end, links fail and strangers come") {
  std::vector<Fault> faults = AllFaults();
  AddFaultsOfTokens(&faults);
  std::set<FaultKind> left;
  for (const Fault& fault : WithoutEnds(faults)) left.insert(fault.kind);
  for (const FaultKind kind :
       {FaultKind::kStop, FaultKind::kReset, FaultKind::kFewDescriptors,
        FaultKind::kIdleConnections, FaultKind::kGarbage, FaultKind::kWrongToken}) {
    CHECK(left.contains(kind));
  }
  for (const FaultKind kind : {FaultKind::kKill, FaultKind::kTerminate, FaultKind::kFullDisk,
                               FaultKind::kKillInSave, FaultKind::kRollingRestart}) {
    CHECK_FALSE(left.contains(kind));
  }
}

TEST_CASE("a fault between two tasks overlaps with one of either") {
  const Fault cut = {FaultKind::kPairPartition, FaultTarget::kWorker, FaultTarget::kPs};
  const auto overlaps = [&](FaultTarget target) {
    const Fault other = {FaultKind::kKill, target};
    CHECK(MayOverlap(cut, other) == MayOverlap(other, cut));
    return MayOverlap(cut, other);
  };
  CHECK(overlaps(FaultTarget::kWorker));
  CHECK(overlaps(FaultTarget::kPs));
  CHECK(overlaps(FaultTarget::kPair));
  CHECK_FALSE(overlaps(FaultTarget::kChief));
}

TEST_CASE("a ps and its copy are killed together, and never beside another fault of a ps") {
  Schedule schedule(4, 2, 2, AllFaults());
  int alone = 0, beside = 0;
  for (int round = 0; round < 500; ++round) {
    const auto faults = schedule.Next();
    const auto is_pair = [](const Fault& fault) { return fault.target == FaultTarget::kPair; };
    if (std::ranges::none_of(faults, is_pair)) continue;
    ++(faults.size() == 1 ? alone : beside);
    for (const Fault& fault : faults) {
      if (is_pair(fault)) CHECK(fault.kind == FaultKind::kKill);
      if (!is_pair(fault)) CHECK(fault.target != FaultTarget::kPs);
    }
  }
  CHECK(alone > 0);
  CHECK(beside > 0);
}

}  // namespace
}  // namespace lockstep::test
