// What a ps does beyond the interface of its clients: stock clients, other orders of fields, peers
// that vanish, status and the events of its process.
#include "ps/service/ps_server.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/base/exit_code.h"
#include "common/client/shard_session.h"
#include "common/rpc/credentials.h"
#include "proto/ps.grpc.pb.h"
#include "tests/conformance/small_job.h"
#include "tests/support/await.h"
#include "tests/support/session_calls.h"
#include "tests/unit/ps/service/running_ps.h"

namespace lockstep::ps {
namespace {

using Values = std::unique_ptr<PulledValues>;

std::string Floats(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

// A unary call with the given bytes for a body.
grpc::Status CallRaw(const std::string& address, const std::string& method,
                     const std::string& request) {
  grpc::GenericStub stub(rpc::MakeChannel(address));
  grpc::ClientContext context;
  const grpc::Slice slice(request);
  const grpc::ByteBuffer body(&slice, 1);
  grpc::ByteBuffer reply;
  absl::Notification over;
  grpc::Status status;
  stub.UnaryCall(&context, "/lockstep.ParameterServer/" + method, {}, &body, &reply,
                 [&](const grpc::Status& result) {
                   status = result;
                   over.Notify();
                 });
  over.WaitForNotification();
  return status;
}

TEST_CASE("A stock client with generated messages pushes and pulls") {
  RunningPs ps;
  ps.CreateVariables({3});
  const auto stub = ParameterServer::NewStub(rpc::MakeChannel(ps.address()));
  {
    grpc::ClientContext context;
    PushRequest push = PushOf(0, 0, 0, 3, 0, 3);
    push.set_payload(Floats({1, 2, 3}));
    PushReply reply;
    REQUIRE(stub->Push(&context, push, &reply).ok());
    CHECK(reply.outcomes(0).verdict() == ACCEPTED);
  }
  {
    grpc::ClientContext context;
    PullReply reply;
    REQUIRE(stub->Pull(&context, PullOf(0, 0, 0), &reply).ok());
    CHECK(reply.payload() == Floats({1, 1, 1}));
    CHECK(reply.pieces(0).size() == 12);
  }
}

TEST_CASE("A payload that does not come last, or comes twice, is read like any protobuf field") {
  RunningPs ps;
  ps.CreateVariables({3});
  PushRequest payload, early;
  payload.set_payload(Floats({4, 4, 4}));
  early.set_payload(Floats({9, 9}));
  const std::string message = early.SerializeAsString() + payload.SerializeAsString() +
                              PushOf(0, 0, 0, 3, 0, 3).SerializeAsString();
  CHECK(CallRaw(ps.address(), "Push", message).ok());
  CHECK(ps.shard().Report().accepted == 1);
}

TEST_CASE("A large message of a stranger is refused before anything else in it is looked at") {
  RunningPs ps;
  ps.CreateVariables({3});
  // The field `pieces`, and in it no message.
  const std::string piece = std::string("\x80\x80\x40", 3) + std::string(1 << 20, '\xFF');
  for (const std::string method : {"Push", "Pull"}) {
    const std::string no_message = (method == "Push" ? "\x22" : "\x1a") + piece;
    CAPTURE(method);
    PushRequest stranger;
    *stranger.mutable_worker() = PushOf(7, 0, 0, 3, 0, 3).worker();
    const grpc::Status refused =
        CallRaw(ps.address(), method, stranger.SerializeAsString() + no_message);
    CHECK(refused.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
    CHECK(absl::StrContains(refused.error_message(), "worker 7 is not a member"));
    CHECK(CallRaw(ps.address(), method, no_message).error_code() ==
          grpc::StatusCode::INVALID_ARGUMENT);
    PushRequest member;
    *member.mutable_worker() = PushOf(0, 0, 0, 3, 0, 3).worker();
    CHECK(CallRaw(ps.address(), method, member.SerializeAsString() + no_message).error_code() ==
          grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_CASE("Bodies that are no messages are refused as invalid") {
  RunningPs ps;
  ps.CreateVariables({3});
  for (const char* method : {"Push", "Pull"}) {
    for (const std::string& junk : {std::string("\xff"), std::string(100, '\x7a'),
                                    std::string("\x7a\xff\xff\xff\xff\x7f", 6)})
      CHECK(CallRaw(ps.address(), method, junk).error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_CASE(
    "A chief with another cluster spec, another version, or another index for this ps, is refused "
    "with the difference") {
  RunningPs ps;
  const auto control = MakePsControl(ps.client());
  const auto refusal = [&](const SetViewRequest& view) {
    return CallAndWait(*control, kSetView, view).status();
  };
  SetViewRequest view = TwoWorkers();
  view.set_cluster("chief 0 h:1\nps 0 h:2\nworker 0 other:3\n");
  CHECK(absl::IsFailedPrecondition(refusal(view)));
  CHECK(absl::StrContains(refusal(view).message(), "other:3"));
  CHECK(absl::StrContains(refusal(view).message(), "h:3"));
  view = TwoWorkers();
  view.set_version("0.0.1-older");
  CHECK(absl::IsFailedPrecondition(refusal(view)));
  CHECK(absl::StrContains(refusal(view).message(), "the chief of version 0.0.1-older"));
  view = TwoWorkers();
  view.set_shard(1);
  CHECK(absl::IsFailedPrecondition(refusal(view)));
  CHECK(absl::StrContains(refusal(view).message(), "this is ps 0, the chief calls it ps 1"));
}

TEST_CASE(
    "A chief whose cluster spec has changed is known by the one before, and tells the new one") {
  RunningPs ps;
  const auto control = MakePsControl(ps.client());
  const std::string changed = "chief 0 h:1\nps 0 h:2\nworker 0 other:3\n";
  SetViewRequest view = TwoWorkers();
  view.set_cluster(changed);
  view.add_earlier_clusters("chief 0 x:1\nps 0 x:2\nworker 0 x:3\n");
  CHECK(absl::IsFailedPrecondition(CallAndWait(*control, kSetView, view).status()));
  view.add_earlier_clusters(kTestCluster);
  CHECK(CallAndWait(*control, kSetView, view).ok());
  // The next chief has never had another one.
  view.clear_earlier_clusters();
  CHECK(CallAndWait(*control, kSetView, view).ok());
  CHECK(CallAndWait(*control, kSetView, TwoWorkers()).ok());
}

TEST_CASE("Callers that give up leave parked calls that harm nobody") {
  RunningPs ps;
  ps.CreateVariables({3});
  const auto stub = ParameterServer::NewStub(rpc::MakeChannel(ps.address()));
  const auto gives_up = [&](const auto& call) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
    CHECK(call(&context).error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  };
  PullReply values;
  DequeueTokenReply token;
  GrantReply closed;
  gives_up([&](auto* context) { return stub->Pull(context, PullOf(0, 1, 0), &values); });
  gives_up([&](auto* context) { return stub->DequeueToken(context, DequeueOf(0, 1), &token); });
  gives_up([&](auto* context) { return stub->Grant(context, Granted(0), &closed); });
  const auto control = MakePsControl(ps.client());
  Answer<GrantReply> granted;
  control->Call(kGrant, Granted(0), granted.done());
  const auto data = MakePsData(ps.client());
  for (uint32_t worker : {0, 1}) {
    const std::vector<float> gradient = {1, 2, 3};
    CHECK(Await<PushReply>([&](auto done) {
            data->Push(PushOf(worker, 0, 0, 3, 0, 3), {BytesOf(gradient)}, std::move(done));
          }).ok());
  }
  CHECK(granted.Wait().ok());
  CHECK(Await<Values>([&](auto done) { data->Pull(PullOf(0, 1, 0), std::move(done)); }).ok());
  CHECK(ps.shard().Report().waiting_pulls == 0);
}

TEST_CASE("A caller that goes away takes its parked pull along") {
  RunningPs ps;
  ps.CreateVariables({3});
  const auto stub = ParameterServer::NewStub(rpc::MakeChannel(ps.address()));
  const auto becomes = [&](uint32_t waiting) {
    const absl::Duration end = Clock::Real()->Monotonic() + absl::Seconds(20);
    while (ps.shard().Report().waiting_pulls != waiting) {
      if (Clock::Real()->Monotonic() > end) return false;
      std::this_thread::yield();
    }
    return true;
  };
  const auto cancelled = [&](auto call) {
    grpc::ClientContext context;
    grpc::Status answer;
    std::thread caller([&] { answer = call(&context); });
    CHECK(becomes(1));
    context.TryCancel();
    caller.join();
    CHECK(answer.error_code() == grpc::StatusCode::CANCELLED);
    CHECK(becomes(0));
  };
  PullReply values;
  cancelled([&](auto* context) { return stub->Pull(context, PullOf(0, 1, 0), &values); });
}

TEST_CASE(
    "A ps that goes answers what is parked, and its successor is reached through the same client") {
  auto ps = std::make_unique<RunningPs>();
  ps->CreateVariables({3});
  const std::string address = ps->address();
  const auto data = MakePsData(ps->client());
  Answer<Values> pull;
  Answer<DequeueTokenReply> token;
  data->Pull(PullOf(0, 1, 0), pull.done());
  data->DequeueToken(DequeueOf(0, 1), token.done());
  REQUIRE(Await<Values>([&](auto done) { data->Pull(PullOf(0, 0, 0), std::move(done)); }).ok());
  ps->server().Shutdown(absl::Milliseconds(500));
  CHECK_FALSE(pull.Wait().ok());
  CHECK_FALSE(token.Wait().ok());
  ps.reset();
  const absl::Status gone =
      Await<Values>([&](auto done) { data->Pull(PullOf(0, 0, 0), std::move(done)); }).status();
  CHECK(absl::IsUnavailable(gone));
  CHECK(absl::StartsWith(gone.message(), absl::StrCat("ps 0 (", address, ") is not available")));

  RunningPs successor(address);
  successor.CreateVariables({3});
  std::vector<float> value(3);
  SessionWithTimer session(SessionOf(Worker(0)), data.get());
  session.SetTargets({{VariableId(0), {DType::kFloat32, Shape({3}), value.data()}}});
  const auto version = FetchValues(&session, 0);
  REQUIRE(version.ok());
  CHECK(value == std::vector<float>{1, 1, 1});
}

TEST_CASE("A client names the ps that was started again, whether a chief or a worker asks") {
  RunningPs ps;
  const auto data = MakePsData(ps.client());
  const auto control = MakePsControl(ps.client());
  for (const absl::Status& lost :
       {Await<Values>([&](auto done) { data->Pull(PullOf(0, 0, 0), std::move(done)); }).status(),
        CallAndWait(*control, kGrant, GrantRequest()).status()}) {
    CHECK(absl::StartsWith(lost.message(), absl::StrCat("ps 0 (", ps.address(),
                                                        ") was started again and has lost its "
                                                        "variables. Remedy: ")));
    CHECK(ExitCodeFor(lost) == ExitCode::kPeersLost);
  }
}

TEST_CASE("A shutdown in the middle of many pushes answers each of them once") {
  constexpr int64_t kElements = 1000;
  RunningPs ps;
  ps.CreateVariables(std::vector<int64_t>(100, kElements));
  const auto data = MakePsData(ps.client());
  const std::vector<float> gradient(kElements, 1);
  std::vector<Answer<PushReply>> answers(100);
  for (size_t i = 0; i < answers.size(); ++i) {
    data->Push(PushOf(0, 0, i, kElements, 0, kElements), {BytesOf(gradient)}, answers[i].done());
  }
  REQUIRE(answers[0].Wait().ok());
  ps.server().Shutdown(absl::ZeroDuration());
  uint64_t accepted = 0;
  for (Answer<PushReply>& answer : answers) {
    const absl::Status status = answer.Wait().status();
    accepted += status.ok();
    CHECK((status.ok() || absl::IsUnavailable(status)));
  }
  // The answer to one that the shard has accepted may be lost.
  CHECK(ps.shard().Report().accepted >= accepted);
}

TEST_CASE("64 MiB go to a ps and come back bit for bit") {
  constexpr int64_t kElements = 1 << 22;
  const std::vector<int64_t> sizes = {kElements, 7, kElements, 1000, kElements, kElements};
  RunningPs ps;
  ps.CreateVariables(sizes);
  const auto control = MakePsControl(ps.client());
  const auto data = MakePsData(ps.client());
  Answer<GrantReply> closed;
  control->Call(kGrant, Granted(0), closed.done());
  std::vector<Tensor> gradients, values;
  std::vector<FetchTarget> targets;
  for (size_t i = 0; i < sizes.size(); ++i) {
    gradients.emplace_back(DType::kFloat32, Shape({sizes[i]}));
    values.emplace_back(DType::kFloat32, Shape({sizes[i]}));
    float next = static_cast<float>(i);
    for (float& element : gradients[i].as<float>()) element = next += 0.25f;
    targets.push_back({VariableId(static_cast<uint32_t>(i)), values[i].view()});
  }
  // Two workers send the same: the mean is what each sent.
  for (uint32_t worker : {0, 1}) {
    SessionWithTimer session(SessionOf(Worker(worker)), data.get());
    session.BeginGradient(PushSeq(1), GlobalStep(0), static_cast<int>(sizes.size()));
    for (size_t i = sizes.size(); i > 0; --i) {
      session.Add({VariableId(static_cast<uint32_t>(i - 1)), gradients[i - 1].shape(),
                   gradients[i - 1].view()});
    }
    const auto summary = EndGradient(&session);
    REQUIRE(summary.ok());
    CHECK(summary->accepted == sizes.size());
  }
  REQUIRE(closed.Wait().ok());
  SessionWithTimer session(SessionOf(Worker(0)), data.get());
  session.SetTargets(targets);
  REQUIRE(FetchValues(&session, 1).ok());
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t wrong = 0;
    for (int64_t e = 0; e < sizes[i]; ++e)
      wrong += values[i].as<float>()[e] != 1 - kLearningRate * gradients[i].as<float>()[e];
    CHECK(wrong == 0);
  }
}

TEST_CASE("Rows go to a ps in chunks, and only they change") {
  constexpr int64_t kRows = 40000;
  const Shape table({kRows, 8});
  RunningPs ps;
  const auto control = MakePsControl(ps.client());
  const auto data = MakePsData(ps.client());
  REQUIRE(CallAndWait(*control, kSetView, TwoWorkers()).ok());
  CreateVariablesRequest create = Variables({kRows});
  create.mutable_placement()->mutable_variables(0)->add_dims(8);
  create.mutable_placement()->mutable_variables(0)->set_sparse(true);
  REQUIRE(CallAndWait(*control, kCreateVariables, create).ok());
  Answer<GrantReply> closed;
  control->Call(kGrant, Granted(0), closed.done());

  // Both workers touch the even rows, and each the odd rows of its half.
  std::vector<float> expected(kRows * 8, 1);
  for (uint32_t worker : {0, 1}) {
    std::vector<int64_t> indices;
    for (int64_t row = 0; row < kRows; ++row) {
      if (row % 2 == 0 || (row >= kRows / 2) == (worker == 1)) indices.push_back(row);
    }
    Tensor values(DType::kFloat32, Shape({static_cast<int64_t>(indices.size()), 8}));
    for (size_t i = 0; i < indices.size() * 8; ++i) {
      const float gradient = static_cast<float>(indices[i / 8] % 512) + 0.25f * (i % 8);
      values.as<float>()[i] = gradient;
      expected[indices[i / 8] * 8 + i % 8] = 1 - kLearningRate * gradient;
    }
    SessionOptions options = SessionOf(Worker(worker));
    options.push_chunk_bytes = 100001;
    SessionWithTimer session(options, data.get());
    session.BeginGradient(PushSeq(1), GlobalStep(0), 1);
    session.Add({.id = VariableId(0),
                 .shape = table,
                 .values = values.view(),
                 .is_sparse = true,
                 .indices = indices});
    const auto summary = EndGradient(&session);
    REQUIRE(summary.ok());
    CHECK(summary->accepted == 1);
  }
  REQUIRE(closed.Wait().ok());
  Tensor values(DType::kFloat32, table);
  SessionWithTimer session(SessionOf(Worker(0)), data.get());
  session.SetTargets({{VariableId(0), values.view()}});
  REQUIRE(FetchValues(&session, 1).ok());
  CHECK(std::ranges::equal(values.as<float>(), expected));

  // A row that is none: the sender is told, and the ps goes on.
  const std::vector<int64_t> bad = {kRows};
  session.BeginGradient(PushSeq(2), GlobalStep(1), 1);
  session.Add({.id = VariableId(0),
               .shape = table,
               .values = {DType::kFloat32, Shape({1, 8}), values.data()},
               .is_sparse = true,
               .indices = bad});
  const absl::Status refused = EndGradient(&session).status();
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(absl::StrContains(refused.message(),
                          "variable \"v0\" (0): slice 0: expected a row in [0, 40000), got 40000"));
  CHECK(ps.shard().Report().held_bytes == 0);
}

}  // namespace
}  // namespace lockstep::ps
