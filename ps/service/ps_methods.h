// The methods of a ps. Push and Pull are raw bodies, so that gradients go to the shard in the
// slices in which they came, and values leave in slices over the published tensors.
#pragma once

#include "proto/ps.grpc.pb.h"

namespace lockstep::ps {

using PsMethods = ParameterServer::WithRawMethod_Push<ParameterServer::WithRawMethod_Pull<
    ParameterServer::WithAsyncMethod_GetView<ParameterServer::WithAsyncMethod_SetView<
        ParameterServer::WithAsyncMethod_CreateVariables<ParameterServer::WithAsyncMethod_Grant<
            ParameterServer::WithAsyncMethod_CommitStep<ParameterServer::WithAsyncMethod_Save<
                ParameterServer::WithAsyncMethod_ReleaseSnapshot<
                    ParameterServer::WithAsyncMethod_Finish<
                        ParameterServer::WithAsyncMethod_DequeueToken<
                            ParameterServer::WithAsyncMethod_AttachMemory<
                                ParameterServer::Service>>>>>>>>>>>>;

}  // namespace lockstep::ps
