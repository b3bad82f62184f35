#include "chief/recovery/announce_view.h"

#include <utility>

#include "common/base/ids.h"

namespace lockstep::chief {

ShardCalls::Call AnnounceView(AnnounceTo to, SetViewRequest view, std::vector<PsControl*> shards,
                              Executor* executor, std::vector<SetViewReply>* states) {
  return [=, view = std::move(view), shards = std::move(shards)](size_t shard,
                                                                 StatusCallback answered) {
    if ((shard == kStepShard) != (to == AnnounceTo::kStepShard)) return answered(absl::OkStatus());
    SetViewRequest request = view;
    request.set_shard(static_cast<uint32_t>(shard));
    shards[shard]->Call(kSetView, request,
                        On<SetViewReply>(executor, [=, answered = std::move(answered)](
                                                       absl::StatusOr<SetViewReply> reply) mutable {
                          if (reply.ok()) (*states)[shard] = *reply;
                          answered(reply.status());
                        }));
  };
}

}  // namespace lockstep::chief
