#include "common/rpc/refusal_sender.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/gate.h"
#include "common/rpc/credentials.h"
#include "common/rpc/event_queue.h"
#include "common/rpc/limits.h"
#include "common/rpc/service.h"
#include "common/status/status_service.h"
#include "tests/support/manual_time.h"
#include "tests/support/pending_call.h"

namespace lockstep::rpc {
namespace {

using security::Caller;
using security::CallerRole;
using security::RefusalPace;

constexpr int kAtOnce = RefusalPace::kAtOnce;
constexpr absl::Duration kInterval = RefusalPace::kInterval;

// Answers are numbers, in the order in which they are sent.
struct Refusals {
  void Refuse(int call, uint32_t worker = 0,
              absl::StatusCode code = absl::StatusCode::kPermissionDenied) {
    const std::optional<Caller> caller = Caller{.role = CallerRole::kWorker, .index = worker};
    sender.Send({.call = IdOf(call),
                 .code = code,
                 .caller = caller,
                 .context = context,
                 .message_bytes = 0},
                [this, call, kept = kept] { sent.push_back(call); });
  }
  static const void* IdOf(int call) { return reinterpret_cast<const void*>(intptr_t{call} + 1); }

  grpc::ServerContext context;
  test::ManualTime time;
  RefusalSender sender{&time, &time};
  std::vector<int> sent;
  const std::shared_ptr<int> kept = std::make_shared<int>(0);  // by each answer that is not sent
};

void SpendBudget(Refusals& refusals, uint32_t worker = 0) {
  for (int i = 0; i < kAtOnce; ++i) refusals.Refuse(-1, worker);
  REQUIRE(refusals.sent.size() == kAtOnce);
  refusals.sent.clear();
}

TEST_CASE("refusals beyond a caller's budget are sent one each interval") {
  Refusals refusals;
  SpendBudget(refusals);
  for (int call = 0; call < 3; ++call) refusals.Refuse(call);
  CHECK(refusals.sent.empty());
  refusals.time.Advance(kInterval / 2);
  CHECK(refusals.sent.empty());
  refusals.time.Advance(kInterval / 2);
  CHECK(refusals.sent == std::vector{0});
  refusals.time.Advance(2 * kInterval);
  CHECK(refusals.sent == std::vector{0, 1, 2});
  CHECK(refusals.sender.num_held() == 0);
  CHECK(refusals.kept.use_count() == 1);
}

TEST_CASE("an answer that is due before those that wait is sent in time") {
  Refusals refusals;
  SpendBudget(refusals, 1);
  for (int call = 0; call < 5; ++call) refusals.Refuse(call, 1);
  refusals.sender.Drop(Refusals::IdOf(0));  // the next one is due after two intervals
  refusals.time.Advance(kInterval / 2);
  for (int i = 0; i < kAtOnce; ++i) refusals.Refuse(-1, 2);
  refusals.sent.clear();
  refusals.Refuse(10, 2);
  refusals.time.Advance(kInterval);
  CHECK(refusals.sent == std::vector{10});
  for (int i = 0; i < 4; ++i) refusals.time.Advance(kInterval);
  CHECK(refusals.sent == std::vector{10, 1, 2, 3, 4});
}

TEST_CASE("errors that a job at work meets are never held") {
  Refusals refusals;
  SpendBudget(refusals);
  for (int i = 0; i < 100; ++i) refusals.Refuse(i, 0, absl::StatusCode::kAborted);
  CHECK(refusals.sent.size() == 100);
}

TEST_CASE("the answer to a caller who has gone is destroyed") {
  Refusals refusals;
  SpendBudget(refusals);
  refusals.Refuse(0);
  refusals.Refuse(1);
  CHECK(refusals.kept.use_count() == 3);
  refusals.sender.Drop(Refusals::IdOf(0));
  CHECK(refusals.kept.use_count() == 2);
  refusals.sender.Drop(Refusals::IdOf(7));
  refusals.time.Advance(RefusalPace::kMaxHold);
  CHECK(refusals.sent == std::vector{1});
}

TEST_CASE("beyond a limit on held answers the next ones are sent at once") {
  Refusals refusals;
  SpendBudget(refusals);
  const int limit = static_cast<int>(kMaxHeldRefusals);
  for (int call = 0; call < limit; ++call) refusals.Refuse(call);
  CHECK(refusals.sent.empty());
  refusals.Refuse(limit);
  CHECK(refusals.sent == std::vector{limit});
  CHECK(refusals.sender.num_held() == kMaxHeldRefusals);
}

TEST_CASE("a stop sends held answers, and later ones at once") {
  Refusals refusals;
  SpendBudget(refusals);
  refusals.Refuse(0);
  refusals.Refuse(1);
  refusals.sender.Stop();
  CHECK(refusals.sent == std::vector{0, 1});
  refusals.Refuse(2);
  CHECK(refusals.sent == std::vector{0, 1, 2});
  CHECK(refusals.kept.use_count() == 1);
}

// A status service whose held answers wait for the test.
class PacedServer {
 public:
  PacedServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(service_->methods());
    auto queue = builder.AddCompletionQueue();
    const ServingQueue serving{queue.get(), &gate_, nullptr, &refusals_};
    events_ = std::make_unique<EventQueue>(std::move(queue));
    server_ = builder.BuildAndStart();
    service_->Serve(serving);
    channel_ = MakeChannel(absl::StrCat("127.0.0.1:", port_));
  }
  ~PacedServer() {
    refusals_.Stop();
    server_->Shutdown();
    gate_.Close();
    events_->Drain();
  }

  std::unique_ptr<test::PendingCall> Call(const std::string& body) const {
    return std::make_unique<test::PendingCall>(channel_, "/lockstep.StatusService/GetStatus", body);
  }
  size_t num_held() { return refusals_.num_held(); }
  test::ManualTime* time() { return &time_; }

 private:
  test::ManualTime time_;
  RefusalSender refusals_{&time_, &time_};
  Gate gate_;
  const std::unique_ptr<Service> service_ =
      MakeStatusService({.role = "ps", .task = 0, .incarnation = 5}, nullptr);
  int port_ = 0;
  std::unique_ptr<EventQueue> events_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

constexpr char kNoMessage[] = "\xff\xff";

TEST_CASE("a caller of a server waits for its refusal, and for nothing else") {
  PacedServer server;
  for (int i = 0; i < kAtOnce; ++i) {
    REQUIRE(server.Call(kNoMessage)->Wait().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  }
  const auto refused = server.Call(kNoMessage);
  // Both on one connection and one thread of the server: the refused call came first.
  CHECK(server.Call("")->Wait().ok());
  CHECK(!refused->is_over());
  CHECK(server.num_held() == 1);
  server.time()->Advance(kInterval);
  CHECK(refused->Wait().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_CASE("a refused call that its caller cancels is held no longer") {
  PacedServer server;
  for (int i = 0; i < kAtOnce; ++i) server.Call(kNoMessage)->Wait();
  const auto refused = server.Call(kNoMessage);
  CHECK(server.Call("")->Wait().ok());
  REQUIRE(server.num_held() == 1);
  refused->Cancel();
  CHECK(refused->Wait().error_code() == grpc::StatusCode::CANCELLED);
  // The server hears of it a moment later.
  for (int tries = 0; tries < 1000 && server.num_held() > 0; ++tries) server.Call("")->Wait();
  CHECK(server.num_held() == 0);
}

}  // namespace
}  // namespace lockstep::rpc
