// A schedule: what every participant of a reduction sends, receives and adds, in order. It is a
// value without thread, socket or clock: a function of its ScheduleSpec alone. Whoever carries it
// out, in any order of arrival, gets the same bits, because each addition is one operation of one
// participant with its terms in a fixed order.
//
// Participants are towers: rank = worker * towers per worker + tower. "CPU of a worker" in the
// names of algorithms is its first tower, whose vector lies in the worker's memory.
//
// Use: make the schedule once per vector (MakeSchedule); each step, run one Participant
// (participant.h) per local tower over its vector. All processes make the same schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/reduction/algorithm.h"
#include "common/tensor/element_math.h"

namespace lockstep::worker {

// One term of a sum, or one message. Messages between two participants are numbered from 0 in each
// direction; both ends count alike.
struct Term {
  int rank = 0;
  int message = -1;  // -1: the participant's own elements

  friend bool operator==(const Term&, const Term&) = default;
};

struct Operation {
  enum class Kind {
    kSend,     // `range` goes to terms[0], as message terms[0].message
    kReceive,  // `range` becomes what terms[0] sends
    kSum,      // `range` becomes the sum of the terms, in their order
  };
  Kind kind = Kind::kSend;
  // The sum has a term of every participant. A mean is divided here.
  bool is_total = false;
  ElementRange range;
  size_t first_term = 0;
  size_t num_terms = 0;
};

// What a participant sends.
struct Traffic {
  int64_t messages = 0;
  int64_t elements = 0;

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

// Immutable.
class Schedule {
 public:
  int num_participants() const { return static_cast<int>(participants_.size()); }
  size_t length() const { return length_; }
  absl::Span<const Operation> operations(int rank) const { return participants_[rank].operations; }
  absl::Span<const Term> terms(int rank, const Operation& operation) const {
    return absl::MakeConstSpan(participants_[rank].terms)
        .subspan(operation.first_term, operation.num_terms);
  }
  Traffic SentBy(int rank) const;
  Traffic Total() const;

 private:
  friend class ScheduleBuilder;
  struct Operations {
    std::vector<Operation> operations;
    std::vector<Term> terms;
  };

  size_t length_ = 0;
  std::vector<Operations> participants_;
};

}  // namespace lockstep::worker
