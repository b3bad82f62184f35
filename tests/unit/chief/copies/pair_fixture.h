// A pair whose two places are SimplePs, and a chief that has created its variables.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "chief/copies/shard_pair.h"
#include "common/base/clock.h"
#include "common/base/running_clock.h"
#include "tests/unit/chief/copies/simple_ps.h"
#include "tests/unit/chief/support/manual_executor.h"

namespace lockstep::chief {

// The pair owns its connections; the servers are the test's.
class ConnectionTo final : public PsControl {
 public:
  explicit ConnectionTo(SimplePs* ps) : ps_(ps) { ++ps_->connections; }
  ~ConnectionTo() override { --ps_->connections; }
  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    ps_->Start(method, request, reply, std::move(done));
  }

 private:
  SimplePs* const ps_;
};

struct PairFixture {
  static constexpr absl::Duration kPatience = absl::Seconds(2);
  static constexpr char kHomeAddress[] = "a:1";

  PairFixture() { host_main.copy_port = 7000; }

  template <typename Request, typename Reply>
  absl::StatusOr<Reply> Call(const PsMethod<Request, Reply>& method, const Request& request) {
    std::optional<absl::StatusOr<Reply>> answer;
    pair.Call(method, request, [&](absl::StatusOr<Reply> reply) { answer = std::move(reply); });
    executor.Run();
    if (!answer.has_value()) return absl::DeadlineExceededError("not answered");
    return *std::move(answer);
  }

  SetViewRequest View(uint64_t epoch, uint64_t term = 1) {
    SetViewRequest view;
    view.mutable_command()->set_job(7);
    view.mutable_command()->set_term(term);
    view.set_epoch(epoch);
    view.set_number(1);
    view.add_members()->set_worker(3);
    return view;
  }

  // What a chief does first.
  void Begin(uint64_t epoch = 1) {
    REQUIRE(Call(kGetView, GetViewRequest()).ok());
    REQUIRE(Call(kSetView, View(epoch)).ok());
    REQUIRE(Call(kCreateVariables, Variables()).ok());
    REQUIRE(pair.roles().IsGuarded());
  }

  // The home is lost while the job trains, its copy serves, and the home is started again.
  void LetHostServe() {
    Begin();
    home.is_away = true;
    Pass(absl::Seconds(1));
    REQUIRE(pair.roles().serving() == kHost);
    home.StartAgain();
  }

  static CreateVariablesRequest Variables() {
    CreateVariablesRequest request;
    request.set_seed(5);
    return request;
  }

  void Pass(absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(100)) {
      clock.Advance(absl::Milliseconds(100));
      pair.Tick();
      executor.Run();
    }
  }

  // As of a chief that is stopped for longer than its patience, and goes on.
  void StandStill() { clock.Advance(5 * kPatience); }

  // The ps of the host is started again: its copy server is at another port.
  SimplePs* RestartHost() {
    host_main.copy_port += 1;
    return &copies[host_main.copy_port];
  }

  SimplePs* copy() { return &copies[host_main.copy_port]; }

  SimplePs home;
  SimplePs host_main;
  std::map<uint32_t, SimplePs> copies;  // by port
  ManualExecutor executor;
  ManualClock clock;
  const RunningClock running{&clock};
  ShardPair pair{std::make_unique<HomePlace>("ps 0 (a:1)", kHomeAddress, &home, &executor),
                 std::make_unique<HostPlace>(
                     HostPlaceOptions{.name = "ps 1 (b:1)",
                                      .address = "b:1",
                                      .connect =
                                          [this](const std::string& address) {
                                            const size_t colon = address.rfind(':');
                                            const int port = std::stoi(address.substr(colon + 1));
                                            return std::make_unique<ConnectionTo>(
                                                &copies[static_cast<uint32_t>(port)]);
                                          }},
                     &host_main, &executor),
                 kPatience, &executor, &running};
};

}  // namespace lockstep::chief
