// The shards that a ps process hosts: its own, and the copy that it keeps of another ps's. A copy
// may serve the workers in its primary's place.
#pragma once

#include "ps/copy/copy_host.h"
#include "ps/service/heap_trim_policy.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

// Thread-safe. Both outlive it.
class HostedShards {
 public:
  HostedShards(Shard* own, const CopyHost* copy) : own_(own), copy_(copy) {}

  PsActivity Activity() const { return {.own = own_->Activity(), .copy = copy_->Activity()}; }
  // Whether one of them has a version that was to be saved and is not, as far as is known: the
  // process stays for the next chief.
  bool HoldUnsaved() const { return own_->GetView().holds_unsaved || copy_->HoldsUnsaved(); }
  // Finds out whether that is in a checkpoint by now. Blocks on the disk.
  void LookForCheckpoints() const {
    own_->LookForCheckpoint();
    copy_->LookForCheckpoint();
  }

 private:
  Shard* const own_;
  const CopyHost* const copy_;
};

}  // namespace lockstep::ps
