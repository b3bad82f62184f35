// The methods of the peer service that a client calls.
#pragma once

#include "common/rpc/limits.h"
#include "common/transport/tensor_transport.h"
#include "proto/peer.pb.h"

namespace lockstep::worker {

// Parked until the receiver has come so far.
inline constexpr TensorMethod<SendRequest, SendReply> kSend{"/lockstep.Peer/Send",
                                                            rpc::kParkedDeadline};
inline constexpr TensorMethod<ProbeRequest, ProbeReply> kProbe{"/lockstep.Peer/Probe",
                                                               rpc::kControlDeadline};
inline constexpr TensorMethod<ReadStateRequest, ReadStateReply> kReadState{
    "/lockstep.Peer/ReadState", rpc::kControlDeadline};
inline constexpr TensorMethod<CompareRequest, CompareReply> kCompare{"/lockstep.Peer/Compare",
                                                                     rpc::kControlDeadline};
inline constexpr TensorMethod<AttachPeerMemoryRequest, AttachMemoryReply> kAttachMemory{
    "/lockstep.Peer/AttachMemory", rpc::kControlDeadline};

}  // namespace lockstep::worker
