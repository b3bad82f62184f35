// The takes of an accumulator under test: starts and cancels them, and keeps what has finished.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/reference/waiting_accumulator.h"

namespace lockstep::reference::test {

// `Accumulator` is a WaitingAccumulator.
template <typename Accumulator>
class TakeLog {
 public:
  using FinishedTake = typename Accumulator::FinishedTake;

  // The accumulator outlives the log.
  explicit TakeLog(Accumulator* accumulator) : accumulator_(accumulator) {}

  TakeId Start(int required) {
    const TakeId id(++last_take_);
    auto finished = accumulator_->Take(id, required);
    REQUIRE(finished.ok());
    RecordTakes(*std::move(finished));
    return id;
  }
  void Cancel(TakeId id) { RecordTakes(accumulator_->Cancel(id)); }
  // What a call of the accumulator's finished.
  void RecordTakes(std::vector<FinishedTake> finished) {
    for (auto& take : finished) {
      const TakeId id = take.id;
      REQUIRE(finished_.emplace(id, std::move(take)).second);
    }
  }

  bool IsFinished(TakeId id) const { return finished_.contains(id); }
  absl::Status StatusOf(TakeId id) const { return finished_.at(id).gradient.status(); }
  const auto& ResultOf(TakeId id) const {
    REQUIRE(IsFinished(id));
    REQUIRE(StatusOf(id).ok());
    return *finished_.at(id).gradient;
  }
  int CountOf(TakeId id) const { return finished_.at(id).count; }

 private:
  Accumulator* const accumulator_;
  uint64_t last_take_ = 0;
  std::map<TakeId, FinishedTake> finished_;
};

}  // namespace lockstep::reference::test
