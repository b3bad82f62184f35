#include "worker/service/failover_chief_client.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>

#include "common/base/chief_stopping.h"
#include "tests/support/fake_service_client.h"

namespace lockstep::worker {
namespace {

// A chief whose calls the test answers, and that cancels them when it is destroyed.
class ParkedChief final : public ChiefClient {
 public:
  struct Call {
    const ParkedChief* asked;
    MethodInfo method;
    HeartbeatRequest request;
    HeartbeatReply* reply;
    StatusCallback done;
  };

  ParkedChief(std::vector<Call>* calls, int* clients) : calls_(calls), clients_(clients) {
    ++*clients_;
  }
  ~ParkedChief() override {
    --*clients_;
    for (Call& call : std::exchange(*calls_, {})) {
      if (call.asked != this) {
        calls_->push_back(std::move(call));
      } else {
        call.done(absl::CancelledError("closed"));
      }
    }
  }

  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    Call call{.asked = this,
              .method = method,
              .reply = dynamic_cast<HeartbeatReply*>(reply),
              .done = std::move(done)};
    if (call.reply != nullptr) call.request = static_cast<const HeartbeatRequest&>(request);
    calls_->push_back(std::move(call));
  }

 private:
  std::vector<Call>* const calls_;
  int* const clients_;
};

struct Fixture {
  // Of chief i the address is "i".
  explicit Fixture(size_t num_chiefs = 2) : calls(num_chiefs + 1) {
    std::vector<std::string> addresses;
    for (size_t i = 0; i < num_chiefs; ++i) addresses.push_back(std::to_string(i));
    client = std::make_unique<FailoverChiefClient>(
        [this](const std::string& address) {
          return std::make_unique<ParkedChief>(&calls[std::stoul(address)], &clients);
        },
        addresses, [this](const std::string& address) { found.push_back(std::stoul(address)); });
  }
  using Got = std::shared_ptr<std::optional<absl::StatusOr<HeartbeatReply>>>;
  Got Beat(uint32_t worker = 3) {
    HeartbeatRequest request;
    request.set_worker(worker);
    Got got = std::make_shared<Got::element_type>();
    client->Call(kHeartbeat, request,
                 [got](absl::StatusOr<HeartbeatReply> reply) { *got = std::move(reply); });
    return got;
  }
  void Answer(size_t chief, absl::Status status = absl::OkStatus()) {
    REQUIRE(calls[chief].size() == 1);
    ParkedChief::Call call = std::move(calls[chief].back());
    calls[chief].pop_back();
    if (status.ok()) call.reply->set_finish(true);
    call.done(std::move(status));
  }

  std::vector<std::vector<ParkedChief::Call>> calls;  // by address
  std::vector<size_t> found;
  int clients = 0;  // that exist
  std::unique_ptr<FailoverChiefClient> client;
};

const absl::Status kStandby = absl::UnavailableError("standby of chief 0");

TEST_CASE("the next chief is asked at once where one stands by or is away") {
  for (const absl::Status& away :
       {kStandby, absl::DeadlineExceededError("stopped"), ChiefStoppingError()}) {
    CAPTURE(away.ToString());
    Fixture f;
    const auto got = f.Beat();
    f.Answer(0, away);
    REQUIRE(f.calls[1].size() == 1);
    CHECK(f.calls[1][0].request.worker() == 3);
    f.Answer(1);
    REQUIRE(got->has_value());
    CHECK((*got)->value().finish());
    CHECK(f.found == std::vector<size_t>{1});
  }
}

TEST_CASE("a call that this worker has cancelled is made at no other chief") {
  Fixture f;
  const auto got = f.Beat();
  f.Answer(0, absl::CancelledError("calls to the chief were cancelled"));
  REQUIRE(got->has_value());
  CHECK(absl::IsCancelled((*got)->status()));
  CHECK(f.calls[1].empty());
}

TEST_CASE("the chief that answered last is asked first, and named") {
  Fixture f;
  f.Beat();
  f.Answer(0, kStandby);
  CHECK(f.client->last_chief() == "chief 0 (0)");
  f.Answer(1);
  CHECK(f.client->last_chief() == "chief 1 (1)");
  f.Beat();
  CHECK(f.calls[0].empty());
  f.Answer(1);
  CHECK(f.found.size() == 1);
  f.Beat();
  f.Answer(1, absl::UnavailableError("connection refused"));
  f.Answer(0);
  CHECK(f.found == std::vector<size_t>{1, 0});
}

TEST_CASE("a refusal is the answer of a chief that commands") {
  Fixture f;
  const auto got = f.Beat();
  f.Answer(0, absl::AbortedError("not a member"));
  REQUIRE(got->has_value());
  CHECK(absl::IsAborted((*got)->status()));
  CHECK(f.calls[1].empty());
}

TEST_CASE("where nobody commands, the failure has what each chief said") {
  Fixture f(3);
  const auto got = f.Beat();
  f.Answer(0, absl::UnavailableError("connection refused"));
  f.Answer(1, kStandby);
  f.Answer(2, absl::DeadlineExceededError("no answer"));
  REQUIRE(got->has_value());
  CHECK(absl::IsUnavailable((*got)->status()));
  CHECK((*got)->status().message() == "connection refused; standby of chief 0; no answer");
  CHECK(f.calls[0].empty());
}

TEST_CASE("a chief that was stopped keeps a call for less than a lease and a second") {
  Fixture f;
  f.Beat();
  CHECK(f.calls[0][0].method.deadline == absl::Seconds(2));
  f.client->Call(kRegisterTask, RegisterTaskRequest(),
                 [](const absl::StatusOr<RegisterTaskReply>&) {});
  CHECK(f.calls[0][1].method.deadline == absl::Seconds(4));
}

TEST_CASE("the only chief is called as ever") {
  Fixture f(1);
  CHECK(f.client->last_chief() == "the chief (0)");
  const auto got = f.Beat();
  CHECK(f.calls[0][0].method.deadline == kHeartbeat.deadline);
  f.Answer(0, kStandby);
  CHECK((*got)->status() == kStandby);
}

TEST_CASE("a chief that has moved is called at its new address") {
  const size_t num_chiefs = GENERATE(1, 2);
  CAPTURE(num_chiefs);
  Fixture f(num_chiefs);
  const std::string other = std::to_string(num_chiefs);
  const auto before = f.Beat();
  f.client->SetAddresses(num_chiefs == 1 ? std::vector<std::string>{other}
                                         : std::vector<std::string>{other, "1"});
  const auto after = f.Beat();
  REQUIRE(f.calls[num_chiefs].size() == 1);
  f.Answer(num_chiefs);
  CHECK((*after)->value().finish());
  // What is under way at the old one is not cut off.
  CHECK_FALSE(before->has_value());
  f.Answer(0);
  CHECK((*before)->value().finish());
}

TEST_CASE("of chiefs that move often one client stays each, and those with calls under way") {
  const size_t num_chiefs = GENERATE(1, 2);
  CAPTURE(num_chiefs);
  Fixture f(num_chiefs);
  const auto clients = static_cast<int>(num_chiefs);
  const std::string other = std::to_string(num_chiefs);
  const auto at = [&](const std::string& first) {
    return num_chiefs == 1 ? std::vector<std::string>{first} : std::vector<std::string>{first, "1"};
  };
  const auto before = f.Beat();
  f.client->SetAddresses(at(other));
  for (int moves = 0; moves < 100; ++moves) {
    // The answer to a call tells of the move, as that to a heartbeat does.
    const std::string to = moves % 2 == 0 ? "0" : other;
    const size_t from = moves % 2 == 0 ? num_chiefs : 0;
    std::vector<ParkedChief::Call> parked;
    f.calls[from].swap(parked);
    f.client->Call(kHeartbeat, HeartbeatRequest(),
                   [&](const absl::StatusOr<HeartbeatReply>&) { f.client->SetAddresses(at(to)); });
    f.Answer(from);
    f.calls[from].swap(parked);
    CHECK(f.clients <= clients + 2);
  }
  CHECK_FALSE(before->has_value());
  f.Answer(0);
  CHECK((*before)->value().finish());
  f.Beat();
  CHECK(f.clients == clients);
}

TEST_CASE("calls in flight end with the client, and ask nobody any more") {
  Fixture f;
  const auto got = f.Beat();
  f.client.reset();
  REQUIRE(got->has_value());
  CHECK(absl::IsCancelled((*got)->status()));
  CHECK(f.calls[1].empty());
}

}  // namespace
}  // namespace lockstep::worker
