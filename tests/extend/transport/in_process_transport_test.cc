// A ps that is reached through a transport of the test's own.
#include "tests/extend/transport/in_process_transport.h"

#include <catch2/catch.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "common/transport/ps_methods.h"
#include "ps/service/tensor_calls.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep {
namespace {

using ps::test::Harness;

// Two workers that train a vector of four elements.
class TwoReplicas {
 public:
  TwoReplicas() {
    transport.Serve(kPush, std::bind_front(ps::HandlePush, &ps.shard));
    transport.Serve(kPull, std::bind_front(ps::HandlePull, &ps.shard));
  }

  absl::StatusOr<PushReply> Push(uint32_t worker, int64_t step, const std::vector<float>& gradient,
                                 std::optional<DType> rounded_to = {}) {
    PushRequest request;
    *request.mutable_worker() = Identity(worker);
    request.set_push_seq(static_cast<uint64_t>(step) + 1);
    request.set_local_step(step);
    PushPiece* const piece = request.add_pieces();
    piece->set_dtype(rounded_to.has_value() ? BFLOAT16 : FLOAT32);
    piece->add_dims(4);
    piece->set_size(gradient.size() * (rounded_to.has_value() ? 2 : 4));
    absl::StatusOr<PushReply> result = absl::InternalError("was not answered");
    transport.Call(kPush, request,
                   {{.values = std::as_bytes(std::span(gradient)), .rounded_to = rounded_to}},
                   false, [&result](absl::StatusOr<TensorReply<PushReply>> reply) {
                     if (!reply.ok()) {
                       result = reply.status();
                     } else {
                       result = *reply->header;
                     }
                   });
    return result;
  }
  // What comes of it is in the values, now or later.
  struct Pulled {
    absl::Status status = absl::UnknownError("parked");
    std::vector<float> values = std::vector<float>(4);
  };
  std::shared_ptr<Pulled> Pull(int64_t version) {
    PullRequest request;
    *request.mutable_worker() = Identity(0);
    request.set_version(version);
    request.add_pieces();
    const auto pulled = std::make_shared<Pulled>();
    transport.Call(
        kPull, request, {}, true, [pulled](const absl::StatusOr<TensorReply<PullReply>>& reply) {
          pulled->status = reply.status();
          if (!reply.ok()) return;
          const std::span<std::byte> target = std::as_writable_bytes(std::span(pulled->values));
          pulled->status = reply->tensors.CopyTo(std::span(&target, 1));
        });
    return pulled;
  }

  Harness ps{ps::test::PlanOf(ps::test::PlacementOf({{"w", {4}}}), 2, 2)};
  test::InProcessTransport transport;

 private:
  static WorkerIdentity Identity(uint32_t worker) {
    WorkerIdentity identity;
    identity.set_job(ps::test::kJob);
    identity.set_epoch(1);
    identity.set_worker(worker);
    identity.set_incarnation(ps::test::FirstIncarnation(worker).value());
    return identity;
  }
};

TEST_CASE("A step through another transport: gradients, and the values that are parked for") {
  TwoReplicas job;
  const auto parked = job.Pull(1);
  CHECK(absl::IsUnknown(parked->status));
  job.ps.Grant(0, 2);
  REQUIRE(job.Push(0, 0, {1, 2, 3, 4})->outcomes(0).verdict() == ACCEPTED);
  REQUIRE(job.Push(1, 0, {3, 2, 1, 0}, DType::kBFloat16)->outcomes(0).verdict() == ACCEPTED);
  REQUIRE(parked->status.ok());
  CHECK(parked->values == std::vector<float>{-2, -2, -2, -2});
  CHECK(job.Pull(1)->values == parked->values);
}

TEST_CASE("What is parked when calls are cancelled ends with CANCELLED, and so do later calls") {
  TwoReplicas job;
  const auto parked = job.Pull(1);
  job.transport.Cancel();
  CHECK(absl::IsCancelled(parked->status));
  CHECK(job.ps.shard.Report().waiting_pulls == 0);
  CHECK(absl::IsCancelled(job.Push(0, 0, {1, 2, 3, 4}).status()));
}

}  // namespace
}  // namespace lockstep
