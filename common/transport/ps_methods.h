// The methods of a parameter server that tensors travel with.
#pragma once

#include "common/rpc/limits.h"
#include "common/transport/tensor_transport.h"
#include "proto/ps.pb.h"

namespace lockstep {

inline constexpr TensorMethod<PushRequest, PushReply> kPush{"/lockstep.ParameterServer/Push",
                                                            rpc::kDataDeadline};
// With `next` in the request: parked.
inline constexpr TensorMethod<PushRequest, PushReply> kPushAndFetch{
    "/lockstep.ParameterServer/Push", rpc::kParkedDeadline};
inline constexpr TensorMethod<PullRequest, PullReply> kPull{"/lockstep.ParameterServer/Pull",
                                                            rpc::kParkedDeadline};
inline constexpr TensorMethod<StoreVersionRequest, StoreVersionReply> kStoreVersion{
    "/lockstep.ParameterServer/StoreVersion", rpc::kDataDeadline};
inline constexpr TensorMethod<PutStateRequest, PutStateReply> kPutState{
    "/lockstep.ParameterServer/PutState", rpc::kDataDeadline};
inline constexpr TensorMethod<DequeueTokenRequest, DequeueTokenReply> kDequeueToken{
    "/lockstep.ParameterServer/DequeueToken", rpc::kParkedDeadline};

}  // namespace lockstep
