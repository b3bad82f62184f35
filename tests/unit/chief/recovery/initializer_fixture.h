// A shard initializer with two ps that answer as a test tells them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/recovery/shard_initializer.h"
#include "common/base/running_clock.h"
#include "tests/unit/chief/support/manual_executor.h"
#include "tests/unit/chief/support/scripted_ps.h"

namespace lockstep::chief::test {

inline RecoverySpec Options() {
  RecoverySpec options;
  options.shard_names = {"ps 0 (a:1)", "ps 1 (b:2)"};
  options.job = 77;
  options.chief = Incarnation(9);
  options.epoch = Epoch(3);
  options.variables.set_seed(5);
  options.variables.set_start_step(40);
  for (uint32_t i = 0; i < 7; ++i) {
    VariableSpec* variable = options.variables.mutable_placement()->add_variables();
    variable->set_name(absl::StrCat("layer", i));
    variable->set_shard(i == 0 ? 0 : 1);
  }
  options.end = GlobalStep(100);
  return options;
}

inline SetViewReply Seen(uint64_t job, uint64_t term, uint64_t epoch = 0) {
  SetViewReply reply;
  reply.set_job(job);
  reply.set_term(term);
  reply.set_epoch(epoch);
  return reply;
}

struct InitializerFixture {
  explicit InitializerFixture(RecoverySpec with = Options()) : spec(std::move(with)) {
    initializer.Start();
  }

  template <typename Request, typename Reply>
  void Answer(Calls<Request, Reply>* calls, absl::StatusOr<Reply> reply) {
    calls->Answer(std::move(reply));
    executor.Run();
  }

  // The chief runs meanwhile.
  void Pass(absl::Duration time) {
    constexpr absl::Duration kTick = absl::Milliseconds(100);
    for (; time > absl::ZeroDuration(); time -= kTick) {
      clock.Advance(kTick);
      initializer.Tick();
    }
  }

  void AnswerUntilCreation() {
    for (ScriptedPs* ps : {&a, &b}) Answer(&ps->get_view, absl::StatusOr<SetViewReply>(Seen(0, 4)));
    for (ScriptedPs* ps : {&a, &b}) {
      Answer(&ps->set_view, absl::StatusOr<SetViewReply>(SetViewReply()));
    }
  }

  void AnswerHook(StatusCallback done, const absl::Status& answer) {
    if (!hooks_hang) return done(answer);
    hanging = std::move(done);
  }

  RecoverySpec spec;
  ScriptedPs a, b;
  ManualExecutor executor;
  ManualClock clock;
  RunningClock running{&clock};
  std::optional<absl::StatusOr<InitializedShards>> result;
  // What the hooks were asked, and answer.
  std::vector<std::string> asked;
  absl::Status before, accepted;
  bool hooks_hang = false;
  StatusCallback hanging;
  std::function<absl::Status(const std::string&, CreateVariablesRequest*)> keep;
  CommandHooks hooks{.before =
                         [this](const SetViewRequest& view, StatusCallback done) {
                           asked.push_back(absl::StrCat("before ", view.command().term()));
                           AnswerHook(std::move(done), before);
                         },
                     .accepted =
                         [this](const SetViewRequest& view, StartPoint start, StatusCallback done) {
                           asked.push_back(absl::StrCat(
                               start == StartPoint::kTakeOver ? "taken over " : "accepted ",
                               view.command().term()));
                           AnswerHook(std::move(done), accepted);
                         },
                     .taken_over =
                         [this](const std::string& before, CreateVariablesRequest* variables) {
                           return keep == nullptr ? absl::OkStatus() : keep(before, variables);
                         }};
  ShardInitializer initializer{
      spec,
      hooks,
      {&a, &b},
      &executor,
      &running,
      &clock,
      [this](absl::StatusOr<InitializedShards> shards) { result = std::move(shards); }};
};

// A shard that has trained to this step.
inline SetViewReply Trained(int64_t step) {
  SetViewReply reply = Seen(55, 2, 3);
  reply.set_has_variables(true);
  reply.set_shard_step(step);
  reply.set_global_step(step);
  return reply;
}

}  // namespace lockstep::chief::test
