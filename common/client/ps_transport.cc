#include "common/client/ps_transport.h"

#include <utility>

#include "common/transport/grpc_shm/shared_memory_transport.h"

namespace lockstep {

std::unique_ptr<TensorTransport> MakePsTransport(const ClientOptions& options,
                                                 const GradientMemory* gradients,
                                                 StatusCallback opened, AdoptMemory adopt) {
  if (gradients == nullptr) return std::make_unique<GrpcTransport>(options);
  return std::make_unique<SharedMemoryTransport>(options, gradients->segment(), std::move(opened),
                                                 std::move(adopt));
}

}  // namespace lockstep
