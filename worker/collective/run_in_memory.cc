#include "worker/collective/run_in_memory.h"

#include <map>
#include <tuple>
#include <vector>

#include "common/base/check.h"
#include "worker/collective/participant.h"

namespace lockstep::worker {
namespace {

using Kind = Participant::Action::Kind;

class MemoryRun {
 public:
  MemoryRun(const Schedule& schedule, absl::Span<const MutableTensorView> vectors, int divisor) {
    LOCKSTEP_CHECK(vectors.size() == static_cast<size_t>(schedule.num_participants()));
    participants_.reserve(vectors.size());
    for (size_t rank = 0; rank < vectors.size(); ++rank) {
      LOCKSTEP_CHECK(vectors[rank].dtype == vectors[0].dtype);
      participants_.emplace_back(&schedule, static_cast<int>(rank), vectors[rank], divisor);
    }
  }

  void Run() {
    for (bool advances = true; advances;) {
      advances = false;
      for (int rank = 0; rank < static_cast<int>(participants_.size()); ++rank) {
        while (Step(rank)) advances = true;
      }
    }
    for (Participant& participant : participants_) {
      LOCKSTEP_CHECK(participant.Next().kind == Kind::kDone);
    }
  }

 private:
  using Message = std::tuple<int, int, int>;  // from, to, number

  // Whether there was something to do.
  bool Step(int rank) {
    const Participant::Action action = participants_[rank].Next();
    if (action.kind == Kind::kSend) {
      messages_[{rank, action.to.rank, action.to.message}] = action.elements.data;
      return true;
    }
    if (action.kind != Kind::kReceive) return false;
    elements_.clear();
    for (const Term& message : action.messages) {
      const auto found = messages_.find({message.rank, rank, message.message});
      if (found == messages_.end()) return false;
      elements_.push_back(found->second);
    }
    received_.assign(action.messages.begin(), action.messages.end());
    participants_[rank].OnReceived(elements_, action.range.count);
    for (const Term& message : received_) {
      messages_.erase({message.rank, rank, message.message});
      participants_[message.rank].OnSent({rank, message.message});
    }
    return true;
  }

  std::vector<Participant> participants_;
  std::map<Message, const void*> messages_;
  std::vector<const void*> elements_;
  std::vector<Term> received_;
};

}  // namespace

void RunInMemory(const Schedule& schedule, absl::Span<const MutableTensorView> vectors,
                 int divisor) {
  MemoryRun(schedule, vectors, divisor).Run();
}

}  // namespace lockstep::worker
