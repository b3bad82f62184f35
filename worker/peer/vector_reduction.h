// One vector of a reduction over processes: its local participants, the messages that members have
// sent for them, and those on their way to members. Messages are worked on by whichever thread
// brings one while no other does, one thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "worker/collective/collective_keys.h"
#include "worker/collective/local_participants.h"
#include "worker/peer/collective_activity.h"
#include "worker/peer/peer_service.h"

namespace lockstep::worker {

// What a vector needs of the collective that it belongs to.
class VectorOwner : public CollectiveActivity {
 public:
  // Sends a message. VectorReduction::OnAnswered once its elements are not read any more.
  virtual void Send(int vector, int64_t reduction, int64_t step,
                    const LocalParticipants::Send& send) = 0;
  // All local participants of the vector are done.
  virtual void OnVectorDone() = 0;
  // Of a member, for errors.
  virtual const std::string& NameOf(int position) const = 0;
};

// Thread-safe.
class VectorReduction {
 public:
  // Messages of one participant to another that may be unanswered. With their size it bounds what
  // the receiver keeps. Nothing waits in a circle: a schedule sends them in the order of their use
  // (worker/collective/split_messages.h).
  static constexpr int kWindow = 4;

  // A message of a member, with its elements and the call to answer.
  struct Incoming {
    int64_t reduction = 0;  // counted from 0
    int64_t step = 0;
    int position = 0;     // of the member that sent it
    CollectiveCall said;  // by the message
    MessageId message;
    std::shared_ptr<SendCall> call;
    LocalParticipants::Pieces elements;  // which `owner` keeps
    std::shared_ptr<const void> owner;
  };

  // After VectorOwner::Fail, Stop is called. `participants` are those of vector `index` of
  // `num_vectors`. `owner` outlives this. `call`: what messages of the vector say, but for the
  // instance.
  VectorReduction(int index, int num_vectors, const CollectiveCall& call,
                  LocalParticipants participants, VectorOwner* owner);

  // The next reduction begins, with this number and step. `first`: as LocalParticipants::Restart;
  // what it points to stays until VectorOwner::OnVectorDone, and until messages that are under way
  // after a failure are over.
  void Start(int64_t reduction, int64_t step, absl::Span<const void* const> first);
  // Of the reduction under way, an earlier one or the next one.
  void OnMessage(Incoming incoming);
  void OnAnswered(const MessageId& message);
  // Answers all that members have sent, and will send, with `failure`.
  void Stop(const absl::Status& failure);

  // What messages of this reduction say.
  CollectiveCall CallOf(int64_t reduction) const;
  // While no reduction runs.
  const LocalParticipants& participants() const { return participants_; }

 private:
  struct Event {
    enum class Kind { kStart, kMessage, kAnswered, kStop };
    Kind kind = Kind::kStart;
    Incoming incoming;  // of kStart its reduction and step, of kAnswered its message
  };
  // Messages from one participant to another that wait for room.
  struct Stream {
    std::vector<LocalParticipants::Send> waiting;
    size_t next = 0;  // of them
    int unanswered = 0;
  };

  void Post(Event event);
  void Drain();
  void Apply(Event* event);
  void Begin(const Incoming& numbers);
  // Keeps the message, or answers it. One of another collective ends this one, too.
  void Accept(Incoming incoming);
  absl::Status Check(const Incoming& incoming) const;
  void Advance();
  void SendWhatFits(Stream* stream);
  void RefuseAll();
  Stream& StreamOf(const MessageId& message);

  const int index_;
  const int num_vectors_;
  const CollectiveCall call_;
  VectorOwner* const owner_;
  std::vector<const void*> first_;  // written before the event of a start, read by it
  // What follows up to the mutex belongs to the thread that drains.
  LocalParticipants participants_;
  int64_t reduction_ = -1;
  int64_t step_ = 0;
  bool is_open_ = false;  // a reduction runs
  absl::Status failure_;
  std::vector<Incoming> held_;   // unanswered, of this reduction: by slot; call null: none
  std::vector<Incoming> early_;  // of the next one
  std::vector<Stream> streams_;  // by local sender and receiver
  std::vector<LocalParticipants::Send> sends_;
  std::vector<MessageId> consumed_;
  std::vector<Event> batch_;

  absl::Mutex mutex_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mutex_);
  bool is_draining_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status stop_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker
