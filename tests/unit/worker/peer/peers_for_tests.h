// Small groups for the tests of this folder, and a stranger that can say anything to a member.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/await.h"
#include "common/transport/grpc/grpc_transport.h"
#include "tests/support/peer_workers.h"
#include "worker/collective/batch_plan.h"
#include "worker/peer/peer_group_reducer.h"
#include "worker/peer/peer_methods.h"

namespace lockstep::worker {

// One float32 vector over workers of one tower each.
inline GroupReduction ReductionOver(int workers, int64_t length,
                                    ReductionAlgorithm algorithm = ReductionAlgorithm::kXring) {
  const std::vector<TensorSpec> tensors = {{"t", DType::kFloat32, Shape({length})}};
  const ScheduleSpec spec{algorithm, {workers, 1}};
  return {spec.topology, tensors, MakeBatchPlan(PackingPlan::Unpacked(tensors), spec).value(),
          false};
}

// Begins a reduction of ones. Wait returns its outcome.
class Reducing {
 public:
  Reducing(GroupReducer* reducer, int64_t length, int64_t step = 0)
      : gradient_(DType::kFloat32, Shape({length})) {
    for (float& element : gradient_.as<float>()) element = 1;
    reducer->Reduce(step, {{gradient_.view()}}, [this](absl::Status status) {
      outcome_ = std::move(status);
      told_.Notify();
    });
  }

  bool is_over() const { return told_.HasBeenNotified(); }
  absl::Status Wait() {
    told_.WaitForNotification();
    return outcome_;
  }

 private:
  Tensor gradient_;
  absl::Status outcome_;
  absl::Notification told_;
};

// Says to one worker what a test wants, as the member at some position of a group.
class Stranger {
 public:
  Stranger(const test::PeerWorkers& workers, int to)
      : transport_({.address = workers.address(to), .name = absl::StrCat("worker ", to)}) {}

  // Of the only vector of a ring of two, from rank 0 to rank 1.
  static SendRequest RingMessage(const Group& group, int64_t length, uint32_t number) {
    SendRequest request;
    *request.mutable_sender() = IdentityOf(group);
    std::vector<DeviceId> devices;
    for (const Group::Member& member : group.members) {
      devices.push_back({static_cast<int>(member.worker), DeviceKind::kCpu, 0});
    }
    request.set_group(CollectiveKeys::GroupOf(devices));
    request.set_algorithm("xring");
    request.set_length(length);
    request.set_to(1);
    request.set_number(number);
    return request;
  }

  void Send(const SendRequest& request, std::span<const std::byte> payload, StatusCallback done) {
    transport_.Call(kSend, request, {{.values = payload}}, false,
                    [done = std::move(done)](absl::StatusOr<TensorReply<SendReply>> reply) mutable {
                      done(reply.status());
                    });
  }
  absl::Status SendAndWait(const SendRequest& request, std::span<const std::byte> payload) {
    absl::Status status;
    absl::Notification told;
    Send(request, payload, [&](absl::Status answer) {
      status = std::move(answer);
      told.Notify();
    });
    told.WaitForNotification();
    return status;
  }
  absl::StatusOr<ProbeReply> Probe(const Group& group) {
    ProbeRequest request;
    *request.mutable_sender() = IdentityOf(group);
    return Await<ProbeReply>([&](Callback<ProbeReply> done) {
      transport_.Call(
          kProbe, request, {}, false,
          [done = std::move(done)](absl::StatusOr<TensorReply<ProbeReply>> reply) mutable {
            if (!reply.ok()) return done(reply.status());
            done(*reply->header);
          });
    });
  }

 private:
  GrpcTransport transport_;
};

// Takes every message at once, and remembers what they said.
class AnsweringReceiver final : public PeerReceiver {
 public:
  // `own`: in exchange for members' memory. Null: it takes none.
  explicit AnsweringReceiver(Group group, std::shared_ptr<const shm::Segment> own = nullptr)
      : group_(std::move(group)), memory_(std::move(own), group_.size()) {}

  const Group& group() const override { return group_; }
  absl::Status Compare(int, const CompareRequest&) override { return absl::OkStatus(); }
  AttachMemoryReply OfferAttachment(int position, const std::string& host) override {
    return memory_.Offer(position, host);
  }
  void Receive(int, std::shared_ptr<SendCall> call) override {
    absl::Status answer;
    {
      absl::MutexLock lock(&mutex_);
      requests_.push_back(call->request());
      payload_bytes_ += call->TakeTensors()->num_bytes();
      answer = std::exchange(next_answer_, absl::OkStatus());
    }
    if (!answer.ok()) return call->Respond(answer);
    call->RespondWith(SendReply());
  }
  absl::Status failure() const override { return absl::OkStatus(); }
  void OnNewerView(const GroupViewId&) override {}

  void AnswerNext(absl::Status answer) {
    absl::MutexLock lock(&mutex_);
    next_answer_ = std::move(answer);
  }
  std::vector<SendRequest> requests() const {
    absl::MutexLock lock(&mutex_);
    return requests_;
  }
  uint64_t payload_bytes() const {
    absl::MutexLock lock(&mutex_);
    return payload_bytes_;
  }
  const MemberMemory& memory() const { return memory_; }

 private:
  const Group group_;
  MemberMemory memory_;
  mutable absl::Mutex mutex_;
  std::vector<SendRequest> requests_ ABSL_GUARDED_BY(mutex_);
  uint64_t payload_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status next_answer_ ABSL_GUARDED_BY(mutex_);
};

inline std::span<const std::byte> BytesOf(const Tensor& tensor) { return tensor.view().bytes(); }

}  // namespace lockstep::worker
