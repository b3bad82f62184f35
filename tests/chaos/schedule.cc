#include "tests/chaos/schedule.h"

#include <utility>

namespace lockstep::test {
namespace {

constexpr int kRoundsPerPair = 5;
constexpr uint64_t kLongestWaitMs = 400;
constexpr uint64_t kShortestMs = 200;
constexpr uint64_t kLongestMs = 2500;  // beyond the lease of 2 s

}  // namespace

Schedule::Schedule(uint64_t seed, int num_ps, int num_workers, std::vector<Fault> among)
    : num_ps_(num_ps), num_workers_(num_workers), among_(std::move(among)), random_(seed) {}

Fault Schedule::Draw() {
  if (left_.empty()) left_ = among_;
  std::swap(left_[Below(left_.size())], left_.back());
  Fault fault = left_.back();
  left_.pop_back();
  const bool hits_ps = MayOverlap(fault.target, FaultTarget::kPs);
  if (hits_ps) fault.index = static_cast<int>(Below(num_ps_));
  if (fault.target == FaultTarget::kWorker) fault.index = static_cast<int>(Below(num_workers_));
  if (Lasts(fault.kind)) {
    fault.lasts = absl::Milliseconds(kShortestMs + Below(kLongestMs - kShortestMs));
  }
  return fault;
}

std::vector<Fault> Schedule::Next() {
  std::vector<Fault> round = {Draw()};
  if (++rounds_ % kRoundsPerPair != 0) return round;
  const Fault second = Draw();
  if (MayOverlap(second.target, round[0].target)) {
    left_.push_back(second);  // for a later round
  } else {
    round.push_back(second);
  }
  return round;
}

absl::Duration Schedule::NextWait() { return absl::Milliseconds(Below(kLongestWaitMs)); }

}  // namespace lockstep::test
