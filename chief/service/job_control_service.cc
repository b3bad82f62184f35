#include "chief/service/job_control_service.h"

#include <utility>

#include "common/rpc/unary_method.h"
#include "proto/job_control.grpc.pb.h"

namespace lockstep::chief {
namespace {

class JobControlService final : public rpc::Service {
 public:
  JobControlService(std::function<void(Answer<StopReply>)> stop, Executor* executor)
      : stop_(std::move(stop)), executor_(executor) {}

  rpc::RawMethods* methods() override { return &methods_; }
  void Serve(const rpc::ServingQueue& queue) override {
    rpc::ServeUnary<StopRequest, StopReply>(
        &methods_, queue, [this](const StopRequest&, Callback<StopReply> respond) {
          executor_->Post([this, answer = Answer<StopReply>(std::move(respond))]() mutable {
            stop_(std::move(answer));
          });
        });
  }

 private:
  const std::function<void(Answer<StopReply>)> stop_;
  Executor* const executor_;
  rpc::RawMethods methods_{JobControl::service_full_name()};
};

}  // namespace

std::unique_ptr<rpc::Service> MakeJobControlService(std::function<void(Answer<StopReply>)> stop,
                                                    Executor* executor) {
  return std::make_unique<JobControlService>(std::move(stop), executor);
}

}  // namespace lockstep::chief
