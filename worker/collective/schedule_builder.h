// Writes a schedule in ticks. What a participant sends in a tick is its elements before the tick:
// within a tick, all of its sends come before its sums and receives.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "worker/collective/schedule.h"

namespace lockstep::worker {

// Empty ranges add nothing. Ranks are below the number of participants.
class ScheduleBuilder {
 public:
  ScheduleBuilder(int num_participants, size_t length);

  // `at` gets the sum of the `terms`, in this order; `at` may be one of them. The others send.
  void Sum(int at, ElementRange range, absl::Span<const int> terms, bool is_total);
  // `to` gets what `from` has. Adds nothing where they are the same.
  void Copy(int from, int to, ElementRange range);
  void EndTick();

  // Of a finished schedule that is written anew: `rank` carries this out next. Not together with
  // the calls above.
  void AppendAsIs(int rank, const Operation& operation, absl::Span<const Term> terms);

  // The builder is empty afterwards. Ends the tick.
  Schedule Finish();

 private:
  struct Tick {
    Schedule::Operations sends;
    Schedule::Operations others;
  };

  static void Append(const Operation& operation, absl::Span<const Term> terms,
                     Schedule::Operations* to);
  int AddSend(int from, int to, ElementRange range);

  Schedule schedule_;
  std::vector<Tick> tick_;                       // by rank
  std::map<std::pair<int, int>, int> messages_;  // (from, to): sent so far
};

}  // namespace lockstep::worker
