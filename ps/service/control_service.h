// The calls of ParameterServer that carry no tensors, on gRPC's callback API; Push and Pull are
// left raw for DataCalls.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "proto/ps.grpc.pb.h"
#include "ps/service/memory_desk.h"
#include "ps/service/serial_thread.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

// What a ps process is, and what it wants to know of. The callbacks run on gRPC's threads.
struct PsIdentity {
  uint32_t task_index = 0;
  std::string cluster;  // canonical text of this process's own cluster spec
  Incarnation incarnation;
};
struct PsEvents {
  std::function<void()> called_by_chief;  // on every such call
  std::function<void()> created;          // the variables exist
  std::function<void()> finished;         // the job is over
};

using RawAndCallbackMethods =
    ParameterServer::WithRawMethod_Push<ParameterServer::WithRawMethod_Pull<
        ParameterServer::WithCallbackMethod_GetView<ParameterServer::WithCallbackMethod_SetView<
            ParameterServer::WithCallbackMethod_CreateVariables<
                ParameterServer::WithCallbackMethod_Grant<
                    ParameterServer::WithCallbackMethod_CommitStep<
                        ParameterServer::WithCallbackMethod_Save<
                            ParameterServer::WithCallbackMethod_ReleaseSnapshot<
                                ParameterServer::WithCallbackMethod_Finish<
                                    ParameterServer::WithCallbackMethod_DequeueToken<
                                        ParameterServer::WithCallbackMethod_AttachMemory<
                                            ParameterServer::Service>>>>>>>>>>>>;

class ControlService final : public RawAndCallbackMethods {
 public:
  // `shard` and `memory`, which may be null, outlive the service.
  ControlService(Shard* shard, MemoryDesk* memory, PsIdentity identity, PsEvents events);

  grpc::ServerUnaryReactor* GetView(grpc::CallbackServerContext* context, const GetViewRequest*,
                                    SetViewReply* reply) override;
  grpc::ServerUnaryReactor* SetView(grpc::CallbackServerContext* context,
                                    const SetViewRequest* request, SetViewReply* reply) override;
  grpc::ServerUnaryReactor* CreateVariables(grpc::CallbackServerContext* context,
                                            const CreateVariablesRequest* request,
                                            CreateVariablesReply* reply) override;
  grpc::ServerUnaryReactor* Grant(grpc::CallbackServerContext* context, const GrantRequest* request,
                                  GrantReply* reply) override;
  grpc::ServerUnaryReactor* CommitStep(grpc::CallbackServerContext* context,
                                       const CommitStepRequest* request,
                                       CommitStepReply* reply) override;
  grpc::ServerUnaryReactor* Save(grpc::CallbackServerContext* context, const SaveRequest* request,
                                 SaveReply* reply) override;
  grpc::ServerUnaryReactor* ReleaseSnapshot(grpc::CallbackServerContext* context,
                                            const ReleaseSnapshotRequest* request,
                                            ReleaseSnapshotReply* reply) override;
  grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context,
                                   const FinishRequest* request, FinishReply* reply) override;
  grpc::ServerUnaryReactor* DequeueToken(grpc::CallbackServerContext* context,
                                         const DequeueTokenRequest* request,
                                         DequeueTokenReply* reply) override;
  grpc::ServerUnaryReactor* AttachMemory(grpc::CallbackServerContext* context,
                                         const AttachMemoryRequest* request,
                                         AttachMemoryReply* reply) override;

 private:
  // OK when the chief means this process and has the same cluster spec.
  absl::Status CheckAddressee(const SetViewRequest& request);
  void LogOnce(const std::string& refusal);

  Shard* const shard_;
  MemoryDesk* const memory_;
  const PsIdentity identity_;
  const PsEvents events_;
  absl::Mutex mutex_;
  std::string last_refusal_ ABSL_GUARDED_BY(mutex_);
  SerialThread disk_;
};

}  // namespace lockstep::ps
