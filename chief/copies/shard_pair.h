// A shard that may be at two places: to the rest of the chief it is one ps. Calls go to the place
// that serves the shard, and to the other one as far as it must know; when one of the two is lost,
// the other one goes on, and callers see UNAVAILABLE until it does. A ps that comes back keeps the
// new copy.
//
// Lives on the executor's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/copies/copy_attacher.h"
#include "chief/copies/finish_notice.h"
#include "chief/copies/pair_roles.h"
#include "chief/copies/pair_view.h"
#include "chief/copies/pair_watch.h"
#include "chief/copies/place.h"
#include "chief/loop/executor.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/client/ps_control.h"

namespace lockstep::chief {

class ShardPair final : public PsControl {
 public:
  // `patience` with a place that is silent. `executor`, `clock`, what the places call and the pair
  // itself outlive the calls under way: destroy it after the executor has ended.
  ShardPair(std::unique_ptr<Place> home, std::unique_ptr<Place> host, absl::Duration patience,
            Executor* executor, const Clock* clock);

  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override;
  // Of the two ps of the shard, which may have moved.
  Place* home() { return home_.get(); }
  Place* host() { return host_.get(); }
  // Looks after both. Several times a second.
  void Tick();
  // Of a job that is over: FinishNotice::DescribeWaiting.
  std::string DescribeUnfinished() const { return finish_notice_.DescribeWaiting(); }

  const PairRoles& roles() const { return roles_; }

 private:
  struct Pending {
    google::protobuf::MessageLite* reply;
    StatusCallback done;
    std::optional<PlaceIndex> saves_at;  // nullopt: another call
  };

  void GetView(SetViewReply* reply, StatusCallback done);
  // Asks both places, and takes what they say for what is.
  void ReadRoles(SetViewReply* reply, StatusCallback done);
  absl::Status TakeView(const absl::StatusOr<PairView>& view, SetViewReply* reply);
  // The shard goes on alone, as this chief has it: when a new copy is complete is for the attempt
  // that makes it to say. Taken from here, the pair would not be one under this chief's view, and
  // nobody would promote the copy.
  bool IsAloneAsKnown(const PairView& view) const;
  // A place has refused the view of a chief that takes command: the chief before it may have let
  // the other one serve since this one has looked. UNAVAILABLE if so, otherwise the refusal.
  void ReadRolesAgain(const absl::Status& refusal, StatusCallback done);
  void SetView(const SetViewRequest& request, SetViewReply* reply, StatusCallback done);
  void BeginEpoch(const SetViewRequest& request, SetViewReply* reply, StatusCallback done);
  void SetCopysView(const SetViewRequest& request, SetViewReply* reply, StatusCallback done);
  void CreateVariables(const CreateVariablesRequest& request, CreateVariablesReply* reply,
                       StatusCallback done);
  void CreateCopy(const CreateVariablesRequest& request, StatusCallback done);
  void WatchCommand(const WatchCommandRequest& request, WatchCommandReply* reply,
                    StatusCallback done);
  // From the place that was asked. UNAVAILABLE: the other one is to be asked.
  absl::Status OnCommand(PlaceIndex asked, const absl::Status& status,
                         const WatchCommandReply& reply);
  // Standby chiefs and the processes of the job hear of it from either place; what this one answers
  // is nobody's concern.
  void RenewOther(const RenewLeaseRequest& request);
  // To the place that serves. Where both have lost the shard, the chief's lease and the end of the
  // job go to its home: the ps there, started again, waits for this chief, and ends with the job.
  void Forward(const MethodInfo& method, const google::protobuf::MessageLite& request,
               google::protobuf::MessageLite* reply, StatusCallback done);
  absl::Status NoteReply(PlaceIndex place, const MethodInfo& method,
                         const google::protobuf::MessageLite& reply);
  // A ps that was started again may have its copy at another port.
  void FindAgain(PlaceIndex place);
  // Where the host serves alone and does not answer: started again, it has another address, and
  // nothing that is sent to the old one shows that the shard is lost.
  void FindLossAtHost();
  // The same of a chief that has not commanded the host yet. Tells `failure` where the shard is
  // still served, by whichever of the two.
  void LookForHost(const absl::Status& failure, StatusCallback done);
  // A pair: both are there under this chief's view.
  void Guard();
  // Calls under way are to be made again, but for saves at `stays`: a large one takes long, and
  // when the processes of a job end there is no time for another.
  void FailPending(const absl::Status& why, std::optional<PlaceIndex> stays);

  const std::unique_ptr<Place> home_;
  const std::unique_ptr<Place> host_;
  Executor* const executor_;
  PairRoles roles_;
  PairWatch watch_;
  CopyAttacher attacher_;
  FinishNotice finish_notice_;
  PlaceIndex watched_ = kHome;  // WatchCommand goes there
  bool knows_nobody_ = false;   // the other place has answered that no chief commands
  uint64_t last_call_ = 0;
  std::map<uint64_t, Pending> pending_;  // of Forward, by number
};

}  // namespace lockstep::chief
