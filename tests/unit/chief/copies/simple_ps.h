// The server of a shard as a chief sees it: has a role, variables and a copy, and obeys orders at
// once. It can be away, hang, or be started again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/lost_variables.h"
#include "common/client/ps_control.h"
#include "tests/support/fake_service_client.h"

namespace lockstep::chief {

class SimplePs final : public test::FakeServiceClient<PsControlService> {
 public:
  SimplePs() {
    const auto get_view =
        Answered<GetViewRequest, SetViewReply>([this](const GetViewRequest& request) {
          SetViewReply reply = state;
          if (request.opens_copy_port()) reply.set_copy_port(copy_port);
          return reply;
        });
    Handle(kGetView, [this, get_view](const GetViewRequest& request, Callback<SetViewReply> done) {
      if (unanswered == 0) return get_view(request, std::move(done));
      --unanswered;
      questions_.push_back(std::move(done));
    });
    Handle(kSetView, Answered<SetViewRequest, SetViewReply>(
                         [this](const SetViewRequest& request) { return SetView(request); }));
    Handle(kCreateVariables,
           Answered<CreateVariablesRequest, CreateVariablesReply>(
               [this](const CreateVariablesRequest& request) { return Create(request); }));
    Handle(kCommitStep, Answered<CommitStepRequest, CommitStepReply>(
                            [this](const CommitStepRequest&) -> absl::StatusOr<CommitStepReply> {
                              if (!state.has_variables()) return NoVariablesError("empty");
                              if (keeps_copy) return absl::UnavailableError("it keeps a copy");
                              CommitStepReply reply;
                              reply.set_global_step(state.global_step());
                              return reply;
                            }));
    Handle(kSave, [this](const SaveRequest&, Callback<SaveReply> done) {
      saves.push_back(std::move(done));
    });
    Handle(kWatchCommand,
           Answered<WatchCommandRequest, WatchCommandReply>([this](const WatchCommandRequest&) {
             WatchCommandReply reply;
             reply.mutable_command()->set_state(command);
             return reply;
           }));
    Handle(kRenewLease, Answered<RenewLeaseRequest, RenewLeaseReply>([this](const auto&) {
             ++renewals;
             return RenewLeaseReply();
           }));
    Handle(kFinish, Answered<FinishRequest, FinishReply>([this](const FinishRequest&) {
             ++finished;
             return FinishReply();
           }));
  }

  // As a process that was started again.
  void StartAgain() {
    state = SetViewReply();
    is_away = hangs = false;
    orders.clear();
    created.clear();
  }

  // Answers the first question that was left without an answer.
  void Answer(absl::StatusOr<SetViewReply> view) {
    Callback<SetViewReply> done = std::move(questions_.front());
    questions_.erase(questions_.begin());
    done(std::move(view));
  }

  void Release() {
    for (const auto& call : std::exchange(late_, {})) call();
  }

  SetViewReply state;
  uint32_t copy_port = 0;  // of the main server of a ps
  bool is_away = false;
  int failures = 0;            // of the next calls, which do not arrive
  int unanswered = 0;          // of the next GetView, until Answer
  bool hangs = false;          // calls are never answered
  bool holds = false;          // calls arrive with Release
  bool loses_answers = false;  // of SetView, which it obeys
  absl::Status refusal;        // of SetView and CreateVariables
  int refusals = 0;            // of SetView
  bool keeps_copy = false;     // as orders for the one that serves find it
  std::vector<SetViewRequest> orders;
  std::vector<CreateVariablesRequest> created;
  int connections = 0;  // of those that have one of their own
  int finished = 0;
  int renewals = 0;                        // of the chief's lease
  std::vector<Callback<SaveReply>> saves;  // which the test answers
  CommandStatus::State command = CommandStatus::NONE;

 private:
  template <typename Request, typename Reply>
  std::function<void(const Request&, Callback<Reply>)> Answered(
      std::function<absl::StatusOr<Reply>(const Request&)> answer) {
    return [this, answer = std::move(answer)](const Request& request, Callback<Reply> done) {
      if (hangs) return;
      if (holds) {
        auto held = std::make_shared<Callback<Reply>>(std::move(done));
        return late_.push_back([answer, request, held] { (*held)(answer(request)); });
      }
      if (failures > 0) {
        --failures;
        return done(absl::UnavailableError("the connection was lost"));
      }
      if (is_away) return done(absl::UnavailableError("connection refused"));
      done(answer(request));
    };
  }

  absl::StatusOr<SetViewReply> SetView(const SetViewRequest& request) {
    if (!refusal.ok()) {
      ++refusals;
      return refusal;
    }
    if (!orders.empty() && request.number() <= orders.back().number()) {
      return absl::AbortedError("an older view");
    }
    if (request.epoch() <= state.epoch()) {
      if (absl::Status status = CheckRole(request); !status.ok()) return status;
    }
    orders.push_back(request);
    if (request.epoch() > state.epoch() && state.job() != 0) state = SetViewReply();
    if (request.role() == COPY && request.makes_copy()) state.set_has_variables(false);
    state.set_job(request.command().job());
    state.set_epoch(request.epoch());
    state.set_term(request.command().term());
    state.set_role(request.role());
    // One that is alone stays so, unless it is to make a new copy.
    const bool is_alone = state.has_variables() && !state.has_copy() && !request.makes_copy();
    state.set_has_copy(!request.copy_address().empty() && !is_alone);
    if (loses_answers) return absl::UnavailableError("connection reset by peer");
    return state;
  }

  absl::Status CheckRole(const SetViewRequest& request) const {
    if (!state.has_variables()) return absl::OkStatus();
    if (request.role() == PRIMARY && state.role() == COPY && state.awaits_state()) {
      return NoVariablesError("the copy awaits state");
    }
    if (request.role() == COPY && state.role() == PRIMARY && !state.has_copy()) {
      return absl::AbortedError("it serves the workers, and no other ps has its state");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<CreateVariablesReply> Create(const CreateVariablesRequest& request) {
    if (!refusal.ok()) return refusal;
    if (state.job() == 0) return NoVariablesError("no chief has called it");
    created.push_back(request);
    state.set_has_variables(true);
    state.set_awaits_state(request.awaits_state());
    return CreateVariablesReply();
  }

  std::vector<std::function<void()>> late_;
  std::vector<Callback<SetViewReply>> questions_;  // without an answer
};

}  // namespace lockstep::chief
