// What a server of a job with a token answers to whom, method by method.
#include "common/rpc/caller_check.h"

#include <grpcpp/channel.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/credentials.h"
#include "common/rpc/server.h"
#include "common/security/job_token.h"
#include "common/security/refusal_pace.h"
#include "common/security/secret_file.h"
#include "common/status/status_service.h"
#include "tests/support/pending_call.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::rpc {
namespace {

using grpc::StatusCode;
using security::Caller;
using security::CallerRole;

const Caller kPs0{.role = CallerRole::kPs, .index = 0};

// A ps with nothing but its status.
class Process {
 public:
  Process() {
    REQUIRE(security::WriteSecret(token_file_, text_).ok());
    const auto credentials = MakeTokenCredentials(token_file_, kPs0);
    REQUIRE(credentials.ok());
    server_ = Server::Start({.address = "127.0.0.1:0",
                             .owner = "ps 0",
                             .credentials = *credentials,
                             .services = {service_.get()}});
    REQUIRE(server_.ok());
    channel_ = MakeChannel(absl::StrCat("127.0.0.1:", (*server_)->port()));
  }

  std::string CredentialOf(const Caller& caller) const {
    return "Bearer " + security::JobToken::Parse(text_)->CredentialFor(caller);
  }

  // `authorization` empty: the call has none.
  grpc::Status Call(const std::string& path, const std::string& authorization,
                    const std::string& body = "") const {
    return test::PendingCall(channel_, path, body, authorization).Wait();
  }

  std::unique_ptr<test::PendingCall> Start(const std::string& path,
                                           const std::string& authorization,
                                           const std::string& body = "") const {
    return std::make_unique<test::PendingCall>(channel_, path, body, authorization);
  }

  void Shutdown(absl::Duration grace) { (*server_)->Shutdown(grace); }

 private:
  const std::string text_ = security::JobToken::NewText();
  const test::TemporaryFolder folder_;
  const std::string token_file_ = folder_.Path("job.token");
  const std::unique_ptr<Service> service_ =
      MakeStatusService({.role = "ps", .task = 0, .incarnation = 5}, nullptr);
  absl::StatusOr<std::unique_ptr<Server>> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

constexpr char kStatus[] = "/lockstep.StatusService/GetStatus";
constexpr char kNoMessage[] = "\xff\xff";

TEST_CASE("A caller is checked before its request is parsed") {
  const Process process;
  const std::string reader = process.CredentialOf({.role = CallerRole::kReader});
  for (const std::string& body : {std::string(), std::string(kNoMessage)}) {
    CAPTURE(body.size());
    const grpc::Status nobody = process.Call(kStatus, "", body);
    CHECK(nobody.error_code() == StatusCode::UNAUTHENTICATED);
    CHECK(absl::StrContains(nobody.error_message(), "Remedy: --token_file=FILE"));
    CHECK(process.Call(kStatus, reader + "0", body).error_code() == StatusCode::UNAUTHENTICATED);
  }
  CHECK(process.Call(kStatus, reader).ok());
  const grpc::Status garbage = process.Call(kStatus, reader, kNoMessage);
  CHECK(garbage.error_code() == StatusCode::INVALID_ARGUMENT);
  CHECK(absl::StrContains(garbage.error_message(), kStatus));
}

TEST_CASE("gRPC's own services ask who calls, too") {
  const Process process;
  const std::string reader = process.CredentialOf({.role = CallerRole::kReader});
  const std::string methods[] = {"/grpc.channelz.v1.Channelz/GetServers",
                                 "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};
  for (const std::string& method : methods) {
    CAPTURE(method);
    for (int i = 0; i < 100; ++i) {
      const grpc::Status nobody = process.Call(method, "");
      REQUIRE(nobody.error_code() == StatusCode::UNAUTHENTICATED);
      REQUIRE(absl::StrContains(nobody.error_message(), "Remedy: --token_file=FILE"));
      REQUIRE(process.Call(method, reader + "0").error_code() == StatusCode::UNAUTHENTICATED);
    }
  }
  CHECK(process.Call(methods[0], reader).ok());
  // A stream that ends without a reply, which a unary call takes for an error of its own.
  const StatusCode reflection = process.Call(methods[1], reader).error_code();
  CHECK((reflection != StatusCode::UNAUTHENTICATED && reflection != StatusCode::UNIMPLEMENTED));
}

TEST_CASE("Health asks for no credential") {
  const Process process;
  CHECK(process.Call("/grpc.health.v1.Health/Check", "").ok());
  CHECK(process.Call("/grpc.health.v1.Health/Check", "Bearer nonsense").ok());
}

TEST_CASE("A method that a process does not have is refused as one that it has") {
  const Process process;
  const std::string chief = process.CredentialOf({.role = CallerRole::kChief});
  const std::string reader = process.CredentialOf({.role = CallerRole::kReader});
  const std::string order = "/lockstep.ParameterServer/GetView";
  CHECK(process.Call(order, "").error_code() == StatusCode::UNAUTHENTICATED);
  CHECK(process.Call(order, reader).error_code() == StatusCode::PERMISSION_DENIED);
  const grpc::Status unknown = process.Call(order, chief);
  CHECK(unknown.error_code() == StatusCode::UNIMPLEMENTED);
  CHECK(absl::StrContains(unknown.error_message(), order));
  for (const char* const method : {"/lockstep.Unknown/GetStatus", "/"}) {
    CAPTURE(method);
    CHECK(process.Call(method, "").error_code() == StatusCode::UNAUTHENTICATED);
    CHECK(process.Call(method, chief).error_code() == StatusCode::PERMISSION_DENIED);
  }
}

TEST_CASE("A caller that is refused again and again waits for each answer") {
  const Process process;
  const std::string reader = process.CredentialOf({.role = CallerRole::kReader});
  struct Refused {
    std::string path, authorization, body;
  };
  const Refused refused = GENERATE_COPY(
      Refused{kStatus, "", ""}, Refused{"/lockstep.ParameterServer/Push", "", ""},
      Refused{"/lockstep.Unknown/GetStatus", reader, ""}, Refused{kStatus, reader, kNoMessage},
      Refused{"/grpc.health.v1.Health/Check", "", std::string(2000, '\0')},
      Refused{"/grpc.health.v1.Health/Watch", "", std::string(2000, '\0')});
  CAPTURE(refused.path);
  const auto call = [&] {
    return process.Call(refused.path, refused.authorization, refused.body).error_code();
  };
  constexpr int kLate = 3;
  const absl::Duration start = Clock::Real()->Monotonic();
  const StatusCode code = call();
  REQUIRE(code != StatusCode::OK);
  for (int i = 1; i < security::RefusalPace::kAtOnce + kLate; ++i) REQUIRE(call() == code);
  CHECK(Clock::Real()->Monotonic() - start >= kLate * security::RefusalPace::kInterval);
}

TEST_CASE("A server that stops answers the refused calls that it holds") {
  Process process;
  const std::string reader = process.CredentialOf({.role = CallerRole::kReader});
  for (int i = 0; i < security::RefusalPace::kAtOnce; ++i) {
    process.Call(kStatus, reader, kNoMessage);
    process.Call(kStatus, "");
  }
  // The last half of them would be held for longer than the grace, and be cancelled then.
  constexpr int kHeld = 2 * security::RefusalPace::kAtOnce;
  const absl::Duration grace = kHeld / 2 * security::RefusalPace::kInterval;
  std::vector<std::unique_ptr<test::PendingCall>> held, strangers;
  for (int i = 0; i < kHeld; ++i) {
    held.push_back(process.Start(kStatus, reader, kNoMessage));
    strangers.push_back(process.Start(kStatus, ""));
  }
  CHECK(process.Call(kStatus, reader).ok());
  process.Shutdown(grace);
  // gRPC itself ends a call of which the server has not heard yet.
  int answered = 0;
  for (int i = 0; i < kHeld; ++i) {
    answered += held[i]->Wait().error_code() == StatusCode::INVALID_ARGUMENT;
    answered += strangers[i]->Wait().error_code() == StatusCode::UNAUTHENTICATED;
  }
  CHECK(answered >= 2 * kHeld * 3 / 4);
}

TEST_CASE("A worker speaks for itself, in every incarnation") {
  const Caller worker{.role = CallerRole::kWorker, .index = 1};
  CHECK(CheckSpeaker(worker, Speaker{1, 5}).ok());
  CHECK(CheckSpeaker(worker, Speaker{1, 1}).ok());
  CHECK(CheckSpeaker(Caller{.role = CallerRole::kWorker}, Speaker{1, 5}).ok());
  CHECK(CheckSpeaker(worker, std::nullopt).ok());
  CHECK(CheckSpeaker(std::nullopt, Speaker{1, 5}).ok());
  CHECK(absl::IsPermissionDenied(CheckSpeaker(worker, Speaker{0, 5})));
}

TEST_CASE("No worker speaks as the primary of a copy") {
  for (const Caller& worker :
       {Caller{.role = CallerRole::kWorker, .index = 0}, Caller{.role = CallerRole::kWorker}}) {
    CAPTURE(security::ToString(worker));
    CHECK(absl::IsPermissionDenied(CheckSpeaker(worker, Speaker{0, 1})));
    CHECK(CheckSpeaker(worker, Speaker{0, 5}).ok());
  }
}

TEST_CASE("A ps speaks for no worker, but as the primary of a copy") {
  for (const Caller& ps :
       {kPs0, Caller{.role = CallerRole::kPs, .index = 1}, Caller{.role = CallerRole::kPs}}) {
    CAPTURE(security::ToString(ps));
    CHECK(CheckSpeaker(ps, Speaker{0, 1}).ok());
    CHECK(CheckSpeaker(ps, std::nullopt).ok());
    CHECK(absl::IsPermissionDenied(CheckSpeaker(ps, Speaker{0, 5})));
    CHECK(absl::IsPermissionDenied(CheckSpeaker(ps, Speaker{1, 1})));
    CHECK(absl::IsPermissionDenied(CheckSpeaker(ps, Speaker{1, 5})));
  }
}

}  // namespace
}  // namespace lockstep::rpc
