#include <map>
#include <thread>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/support/collective_runs.h"
#include "worker/collective/participant.h"

namespace lockstep::test {
namespace {

using worker::Participant;
using worker::Term;
using Kind = Participant::Action::Kind;
using Message = std::tuple<int, int, int>;  // from, to, number

class Mailbox {
 public:
  explicit Mailbox(size_t participants) : acknowledged_(participants) {}

  void Send(const Message& message, const void* elements) {
    const absl::MutexLock lock(&mutex_);
    messages_[message] = elements;
  }

  const void* Receive(const Message& message) {
    const absl::MutexLock lock(&mutex_);
    const auto has_arrived = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return messages_.contains(message);
    };
    mutex_.Await(absl::Condition(&has_arrived));
    return messages_.extract(message).mapped();
  }

  void Acknowledge(const Message& message) {
    const absl::MutexLock lock(&mutex_);
    acknowledged_[std::get<0>(message)].push_back({std::get<1>(message), std::get<2>(message)});
  }

  Term NextAcknowledged(int rank) {
    const absl::MutexLock lock(&mutex_);
    std::vector<Term>& own = acknowledged_[rank];
    const auto has_some = [&]() { return !own.empty(); };
    mutex_.Await(absl::Condition(&has_some));
    const Term term = own.back();
    own.pop_back();
    return term;
  }

 private:
  absl::Mutex mutex_;
  std::map<Message, const void*> messages_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<Term>> acknowledged_ ABSL_GUARDED_BY(mutex_);  // by sender
};

worker::Traffic RunParticipant(Participant participant, int rank, Mailbox* mailbox) {
  worker::Traffic sent;
  for (;;) {
    const Participant::Action action = participant.Next();
    if (action.kind == Kind::kDone) return sent;
    if (action.kind == Kind::kWaitForSends) {
      participant.OnSent(mailbox->NextAcknowledged(rank));
    } else if (action.kind == Kind::kSend) {
      ++sent.messages;
      sent.elements += action.elements.num_elements();
      mailbox->Send({rank, action.to.rank, action.to.message}, action.elements.data);
    } else {
      std::vector<const void*> elements;
      const std::vector<Term> terms(action.messages.begin(), action.messages.end());
      for (const Term& term : terms) {
        elements.push_back(mailbox->Receive({term.rank, rank, term.message}));
      }
      participant.OnReceived(elements, action.range.count);
      for (const Term& term : terms) mailbox->Acknowledge({term.rank, rank, term.message});
    }
  }
}

}  // namespace

CollectiveRun RunInThreads(const worker::Schedule& schedule,
                           absl::Span<const MutableTensorView> vectors, int divisor) {
  CollectiveRun run{true, std::vector<worker::Traffic>(vectors.size())};
  Mailbox mailbox(vectors.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < static_cast<int>(vectors.size()); ++rank) {
    threads.emplace_back([&, rank] {
      run.sent[rank] =
          RunParticipant(Participant(&schedule, rank, vectors[rank], divisor), rank, &mailbox);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return run;
}

}  // namespace lockstep::test
