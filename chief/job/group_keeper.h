// Keeps the group of a replicated job: forms its views of the live members, and tells the workers.
//
// Lives on the executor's thread.
#pragma once

#include "absl/status/status.h"
#include "chief/job/job_state.h"
#include "chief/membership/group_former.h"

namespace lockstep::chief {

class GroupKeeper {
 public:
  // `size`: as of GroupFormer. `job` outlives it, and is initialized.
  GroupKeeper(JobState* job, size_t size);

  // While steps are made: the members that every shard knows reduce together. Errors as
  // GroupFormer::Update.
  absl::Status Follow();
  // After the last step: the first of those that live and have the last version stores it. False:
  // nobody has it any more.
  bool FollowHolders();

 private:
  void SendGroup();

  JobState* const job_;
  GroupFormer former_;
};

}  // namespace lockstep::chief
