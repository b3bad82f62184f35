// What a ps keeps of calls that wait.
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <malloc.h>

#include <catch2/catch.hpp>
#include <functional>
#include <iterator>
#include <list>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/rpc/credentials.h"
#include "proto/ps.pb.h"
#include "tests/conformance/small_job.h"
#include "tests/unit/ps/service/running_ps.h"

namespace lockstep::ps {
namespace {

constexpr int kCalls = 6;
constexpr size_t kIgnored = size_t{8} << 20;

// Of the heap, in use; 0 where another allocator is linked.
size_t BytesInUse() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

bool Becomes(const std::function<bool()>& condition) {
  const absl::Duration end = Clock::Real()->Monotonic() + absl::Seconds(20);
  while (!condition()) {
    if (Clock::Real()->Monotonic() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// A field that no message has, of kIgnored bytes.
grpc::Slice Ignored() {
  PushRequest request;
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
      1000, std::string(kIgnored, 'x'));
  return grpc::Slice(request.SerializeAsString());
}

// Of worker 0, whose gradient counts once, and that waits for another version each time.
PushRequest Waiting(int call) {
  PushRequest push = PushOf(0, 0, 0, 3, 0, 3);
  push.set_push_seq(static_cast<uint64_t>(call) + 1);
  push.set_payload(std::string(3 * sizeof(float), '\0'));
  *push.mutable_next()->mutable_pull() = PullOf(0, call + 1, 0);
  return push;
}

// Calls that end when this goes. What they send of `ignored` is in memory once.
class Calls {
 public:
  explicit Calls(const std::string& address) : stub_(rpc::MakeChannel(address)) {}
  ~Calls() {
    for (Call& call : calls_) call.context.TryCancel();
    for (Call& call : calls_) call.over.WaitForNotification();
  }
  void Start(const std::string& method, const google::protobuf::Message& request) {
    Call& call = calls_.emplace_back();
    const grpc::Slice slices[] = {grpc::Slice(request.SerializeAsString()), ignored_};
    call.request = grpc::ByteBuffer(slices, std::size(slices));
    stub_.UnaryCall(&call.context, "/lockstep.ParameterServer/" + method, {}, &call.request,
                    &call.reply, [&call](const grpc::Status&) { call.over.Notify(); });
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer request, reply;
    absl::Notification over;
  };

  const grpc::Slice ignored_ = Ignored();
  grpc::GenericStub stub_;
  std::list<Call> calls_;
};

TEST_CASE("A push or a pull that waits does not keep what its request took") {
  RunningPs ps;
  ps.CreateVariables({3});
  Calls calls(ps.address());
  const size_t before = BytesInUse();
  uint32_t waiting = 0;
  const auto start = [&](const std::string& method, const google::protobuf::Message& request) {
    calls.Start(method, request);
    ++waiting;
    REQUIRE(Becomes([&] { return ps.shard().Report().waiting_pulls == waiting; }));
  };
  for (int i = 0; i < kCalls; ++i) {
    start("Push", Waiting(i));
    start("Pull", PullOf(1, i + 1, 0));
  }
  // What gRPC reads and writes takes some, too.
  CHECK(Becomes([before] { return BytesInUse() < before + kCalls * kIgnored / 2; }));
}

}  // namespace
}  // namespace lockstep::ps
