// The messages in which the means of a step travel to the copy.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/transport/outgoing_tensor.h"
#include "proto/ps.pb.h"
#include "ps/shard/copy_target.h"

namespace lockstep::ps {

struct MeanMessage {
  PushRequest header;
  std::vector<OutgoingTensor> tensors;  // point into the means
  uint64_t num_bytes = 0;               // of the tensors
};

// At least one: of a step without gradients it has no tensor. Small variables share messages of up
// to `most_bytes`, large ones are cut into such. `push_seq`: of all messages of the step. The means
// stay for as long as the messages.
std::vector<MeanMessage> CutIntoMessages(const StepMeans& means,
                                         const lockstep::WorkerIdentity& primary, PushSeq push_seq,
                                         uint64_t most_bytes);

}  // namespace lockstep::ps
