// ViewQuestions decides when the chief asks a place for its view again, and which answers count.
// One answer that is late or lost says nothing of a ps: as of the renewals of a lease, there are
// four questions in the chief's patience. The patience does not bound how many are under way: a
// call without an answer ends after 5 s, so that with a patience of 2 s there are about ten. Pure:
// time is an argument.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace lockstep::chief {

class ViewQuestions {
 public:
  // True if no question waits for its answer, or the last one has waited for a quarter of
  // `patience`.
  bool MayAsk(absl::Duration now, absl::Duration patience) const {
    return !AwaitsAnswer() || now - asked_at_ >= patience / kQuestionsPerPatience;
  }
  // True if the last question has not been answered, and its call has not failed.
  bool AwaitsAnswer() const { return answered_ != asked_; }
  // Notes that a question is asked. Returns its number.
  uint64_t Ask(absl::Duration now) {
    asked_at_ = now;
    return ++asked_;
  }
  // Notes the answer to this question, or that its call has failed. False if a later question was
  // answered before: this answer is outdated.
  bool TakeAnswer(uint64_t question) {
    if (question < answered_) return false;
    answered_ = question;
    return true;
  }

 private:
  static constexpr int kQuestionsPerPatience = 4;

  absl::Duration asked_at_;  // of the last one
  uint64_t asked_ = 0;
  uint64_t answered_ = 0;  // the highest
};

}  // namespace lockstep::chief
