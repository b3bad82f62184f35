// Reads and writes the fields by which messages name tensors in shared memory: in_memory, place and
// stamp of proto/ps.proto. The server's side.
#pragma once

#include "common/transport/grpc/reference_server.h"
#include "common/transport/grpc_shm/shared_memory_registry.h"

namespace lockstep {

class SharedMemoryReferences final : public ReferenceServer {
 public:
  // `registry` outlives this. Null: nobody can attach memory.
  explicit SharedMemoryReferences(const SharedMemoryRegistry* registry) : registry_(registry) {}

  absl::StatusOr<ReceivedTensors> Resolve(
      const google::protobuf::Message& request,
      std::shared_ptr<const ReceivedTensors::Segments> payload) const override;
  std::shared_ptr<const void> LentTo(const google::protobuf::Message& request) const override;
  absl::Status Refer(const std::vector<OutgoingTensor>& tensors,
                     const std::shared_ptr<const void>& lent,
                     google::protobuf::Message* reply) const override;

 private:
  const SharedMemoryRegistry* const registry_;
};

}  // namespace lockstep
