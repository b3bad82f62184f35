#include "tests/chaos/schedule.h"

#include <utility>

namespace lockstep::test {
namespace {

constexpr int kRoundsPerPair = 5;
constexpr uint64_t kLongestWaitMs = 400;
constexpr uint64_t kShortestMs = 200;
// Beyond the lease of 2 s; between hosts, beyond the time in which each side is to name the other.
constexpr uint64_t kLongestMs = 2500;
constexpr uint64_t kLongestOfHostsMs = 4500;

bool IsBetweenHosts(FaultKind kind) {
  return kind == FaultKind::kHostGone || kind == FaultKind::kPairPartition ||
         kind == FaultKind::kOneWayPartition;
}

}  // namespace

Schedule::Schedule(uint64_t seed, int num_ps, int num_workers, std::vector<Fault> among)
    : num_ps_(num_ps), num_workers_(num_workers), among_(std::move(among)), random_(seed) {}

int Schedule::DrawIndex(FaultTarget target) {
  if (MayOverlap(target, FaultTarget::kPs)) return static_cast<int>(Below(num_ps_));
  return target == FaultTarget::kWorker ? static_cast<int>(Below(num_workers_)) : 0;
}

Fault Schedule::Draw() {
  if (left_.empty()) left_ = among_;
  std::swap(left_[Below(left_.size())], left_.back());
  Fault fault = left_.back();
  left_.pop_back();
  fault.index = DrawIndex(fault.target);
  if (fault.peer == fault.target) {
    fault.peer_index = (fault.index + 1) % num_ps_;
  } else if (fault.peer.has_value()) {
    fault.peer_index = DrawIndex(*fault.peer);
  }
  if (Lasts(fault.kind)) {
    const uint64_t longest = IsBetweenHosts(fault.kind) ? kLongestOfHostsMs : kLongestMs;
    fault.lasts = absl::Milliseconds(kShortestMs + Below(longest - kShortestMs));
  }
  return fault;
}

std::vector<Fault> Schedule::Next() {
  std::vector<Fault> round = {Draw()};
  if (++rounds_ % kRoundsPerPair != 0) return round;
  const Fault second = Draw();
  if (MayOverlap(second, round[0])) {
    left_.push_back(second);  // for a later round
  } else {
    round.push_back(second);
  }
  return round;
}

absl::Duration Schedule::NextWait() { return absl::Milliseconds(Below(kLongestWaitMs)); }

}  // namespace lockstep::test
