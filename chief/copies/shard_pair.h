// A shard of which another ps keeps a copy: to the rest of the chief it is one ps. Calls go to the
// ps that serves the shard, and to the other one as far as it must know; when one of the two is
// lost, the other one goes on, and callers see UNAVAILABLE until it does.
//
// Lives on the executor's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/copies/pair_state.h"
#include "chief/loop/executor.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/client/ps_control.h"

namespace lockstep::chief {

struct ShardPairOptions {
  std::string name;          // "ps 0 (host:port)", for messages
  std::string host_name;     // the same of the ps that keeps the copy
  std::string host_address;  // whose
  absl::Duration patience;   // with one that is silent
  // To the copy, which is at a port that its ps tells.
  std::function<std::unique_ptr<PsControl>(const std::string& address)> connect;
};

class ShardPair final : public PsControl {
 public:
  // `primary`, `host` (the ps that keeps the copy) and the rest outlive the pair, and so do the
  // calls in flight: destroy it after the executor has ended.
  ShardPair(ShardPairOptions options, PsControl* primary, PsControl* host, Executor* executor,
            const Clock* clock);

  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override;
  // Looks after both. Several times a second.
  void Tick();

  // "host:port"; empty before a chief has looked.
  const std::string& copy_address() const { return copy_address_; }
  bool has_moved() const { return state_ == PairState::kMoved; }

 private:
  struct Pending {
    google::protobuf::MessageLite* reply;
    StatusCallback done;
  };
  struct Member {
    MemberHealth health;
    bool is_asked = false;  // a GetView of Watch is under way
  };

  PsControl* serving() { return state_ == PairState::kMoved ? copy_ : primary_; }
  // Both have accepted this chief's view, have the variables, and serve as a pair.
  bool IsGuarded() const { return state_ == PairState::kPair && is_confirmed_; }

  void Look(SetViewReply* reply, StatusCallback done);
  // Asks the ps that keeps the copy for the copy's port.
  void AskHost(Callback<SetViewReply> done);
  // Finds the port first.
  void AskCopy(Callback<SetViewReply> done);
  void OnLooked(const absl::StatusOr<SetViewReply>& primary,
                const absl::StatusOr<SetViewReply>& copy, SetViewReply* reply, StatusCallback done);
  void SetView(const SetViewRequest& request, SetViewReply* reply, StatusCallback done);
  void BeginEpoch(const SetViewRequest& request, SetViewReply* reply, StatusCallback done);
  void SetCopysView(const SetViewRequest& request, StatusCallback done);
  void CreateVariables(const CreateVariablesRequest& request, CreateVariablesReply* reply,
                       StatusCallback done);
  void WatchCommand(const WatchCommandRequest& request, WatchCommandReply* reply,
                    StatusCallback done);
  // To the one that serves; the other one is told, and what it answers is nobody's concern.
  void Forward(const MethodInfo& method, const google::protobuf::MessageLite& request,
               google::protobuf::MessageLite* reply, StatusCallback done);
  template <typename Request, typename Reply>
  void Tell(PsControl* to, const PsMethod<Request, Reply>& method,
            const google::protobuf::MessageLite& request);
  // The same where an answer shows it.
  absl::Status NoteAnswer(Member* member, const MethodInfo& method,
                          const google::protobuf::MessageLite& reply);
  // UNAVAILABLE in place of what shows that one of the pair is lost.
  absl::Status NoteFailure(Member* member, absl::Status failure);

  // Both are there, and have been heard of now.
  void Confirm();
  // Watching.
  void Ask(Member* member, PsControl* ps);
  void OnState(Member* member, const absl::StatusOr<SetViewReply>& reply);
  // A ps that was started again has its copy, without variables, at another port.
  void FindRestart();
  std::string CopyAddress(const SetViewReply& host) const;
  void MoveToCopy(const std::string& why);
  void GoOnAlone(const std::string& why);
  // From now on; calls under way are answered UNAVAILABLE, to be made again.
  void Serve(PairState state, const std::string& line);
  void OnChanged(PairState to, const std::string& line, const absl::StatusOr<SetViewReply>& reply);

  const ShardPairOptions options_;
  PsControl* const primary_;
  PsControl* const host_;
  Executor* const executor_;
  const Clock* const clock_;
  PairState state_ = PairState::kUnknown;
  bool is_confirmed_ = false;
  bool is_changing_ = false;  // a view that changes who serves is under way
  uint64_t epoch_ = 0;        // the highest that was seen
  int64_t committed_ = 0;     // global step, as far as it was told
  SetViewRequest view_;       // the newest
  std::string copy_address_;
  Member primary_member_;
  Member copy_member_;
  absl::Duration next_look_;
  bool watches_copy_ = false;  // WatchCommand goes there
  uint64_t last_call_ = 0;
  std::map<uint64_t, Pending> pending_;  // of Forward, by number
  // Calls of one that is replaced may still be under way; all end before the rest.
  std::vector<std::unique_ptr<PsControl>> copies_;
  PsControl* copy_ = nullptr;  // the last of them
};

}  // namespace lockstep::chief
