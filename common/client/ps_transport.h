// How a worker reaches a ps.
#pragma once

#include <memory>

#include "common/client/gradient_memory.h"
#include "common/transport/grpc/peer.h"
#include "common/transport/tensor_transport.h"

namespace lockstep {

// Over gRPC. Shares memory with a ps of this host if `gradients` has any. It may be null, and is
// not used after the call.
std::unique_ptr<TensorTransport> MakePsTransport(const ClientOptions& options,
                                                 const GradientMemory* gradients);

}  // namespace lockstep
