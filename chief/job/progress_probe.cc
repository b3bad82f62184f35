#include "chief/job/progress_probe.h"

#include <utility>

namespace lockstep::chief {

ProgressProbe::ProgressProbe(std::vector<PsControl*> shards, Executor* executor)
    : shards_(std::move(shards)), executor_(executor) {}

void ProgressProbe::Start(std::function<void(const ProgressByShard&)> done) {
  if (open_ > 0) return;
  open_ = shards_.size();
  progress_.assign(shards_.size(), std::nullopt);
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    shards_[shard]->Call(
        kGetView, GetViewRequest(),
        On<SetViewReply>(executor_, [=, this](const absl::StatusOr<SetViewReply>& reply) {
          if (reply.ok() && reply->has_progress()) progress_[shard] = reply->progress();
          if (--open_ == 0) done(progress_);
        }));
  }
}

}  // namespace lockstep::chief
