#include "chief/service/chief_service.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

#include "common/rpc/grpc_status.h"
#include "proto/chief.grpc.pb.h"

namespace lockstep::chief {
namespace {

class ChiefService final : public Chief::CallbackService {
 public:
  ChiefService(WorkerCalls* calls, Executor* executor) : calls_(calls), executor_(executor) {}

  grpc::ServerUnaryReactor* RegisterTask(grpc::CallbackServerContext* context,
                                         const RegisterTaskRequest* request,
                                         RegisterTaskReply* reply) override {
    return Bring(&WorkerCalls::Register, context, *request, reply);
  }
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const HeartbeatRequest* request,
                                      HeartbeatReply* reply) override {
    return Bring(&WorkerCalls::Heartbeat, context, *request, reply);
  }
  grpc::ServerUnaryReactor* ReportError(grpc::CallbackServerContext* context,
                                        const ReportErrorRequest* request,
                                        ReportErrorReply* reply) override {
    return Bring(&WorkerCalls::ReportError, context, *request, reply);
  }

 private:
  // An answer is given in any case, also when the executor has ended: the call's memory lives until
  // then.
  template <typename Request, typename Reply>
  grpc::ServerUnaryReactor* Bring(void (WorkerCalls::*method)(const Request&, Answer<Reply>),
                                  grpc::CallbackServerContext* context, const Request& request,
                                  Reply* reply) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    Answer<Reply> answer([reactor, reply](absl::StatusOr<Reply> result) {
      if (result.ok()) *reply = *std::move(result);
      reactor->Finish(rpc::ToGrpc(result.status()));
    });
    executor_->Post([calls = calls_, method, request, answer = std::move(answer)]() mutable {
      (calls->*method)(request, std::move(answer));
    });
    return reactor;
  }

  WorkerCalls* const calls_;
  Executor* const executor_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeChiefService(WorkerCalls* calls, Executor* executor) {
  return std::make_unique<ChiefService>(calls, executor);
}

}  // namespace lockstep::chief
