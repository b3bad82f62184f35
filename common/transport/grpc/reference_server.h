// ReferenceServer exchanges tensors by reference, in place of bytes, for a server.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/transport/outgoing_tensor.h"
#include "common/transport/received_tensors.h"

namespace lockstep {

// Thread-safe.
class ReferenceServer {
 public:
  virtual ~ReferenceServer() = default;

  // Returns the tensors of `request`, whose bytes are `payload`. Errors of TensorCall::TakeTensors.
  virtual absl::StatusOr<ReceivedTensors> Resolve(
      const google::protobuf::Message& request,
      std::shared_ptr<const ReceivedTensors::Segments> payload) const = 0;
  // Returns the memory of this process that the sender of `request` sees, if it asks for
  // references. Otherwise null.
  virtual std::shared_ptr<const void> LentTo(const google::protobuf::Message& request) const = 0;
  // Names the tensors in `reply`. UNAVAILABLE: they are not all in the lent memory.
  virtual absl::Status Refer(const std::vector<OutgoingTensor>& tensors,
                             const std::shared_ptr<const void>& lent,
                             google::protobuf::Message* reply) const = 0;
};

}  // namespace lockstep
