// Makes the transport between a worker and a ps.
#pragma once

#include <functional>
#include <memory>

#include "common/client/gradient_memory.h"
#include "common/transport/grpc/peer.h"
#include "common/transport/tensor_transport.h"

namespace lockstep {

// SharedMemoryConnection::Adopt.
using AdoptMemory =
    std::function<std::shared_ptr<const shm::Segment>(std::shared_ptr<const shm::Segment>)>;

// Over gRPC. Shares memory with a ps of this host unless `gradients` is null. `gradients` is not
// used after the call. Unless it is null, `opened` is called once, on a thread of the transport's:
// OK when memory was exchanged, otherwise the reason why tensors travel as bytes. `adopt` gets the
// memory of the ps.
std::unique_ptr<TensorTransport> MakePsTransport(const ClientOptions& options,
                                                 const GradientMemory* gradients,
                                                 StatusCallback opened = nullptr,
                                                 AdoptMemory adopt = nullptr);

}  // namespace lockstep
