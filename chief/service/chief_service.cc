#include "chief/service/chief_service.h"

#include <utility>

#include "common/rpc/unary_method.h"
#include "proto/chief.grpc.pb.h"

namespace lockstep::chief {
namespace {

class ChiefService final : public rpc::Service {
 public:
  ChiefService(FindWorkerCalls calls, Executor* executor)
      : calls_(std::move(calls)), executor_(executor) {}

  rpc::RawMethods* methods() override { return &methods_; }
  void Serve(const rpc::ServingQueue& queue) override {
    Bring(queue, &WorkerCalls::Register);
    Bring(queue, &WorkerCalls::Heartbeat);
    Bring(queue, &WorkerCalls::ReportError);
  }

 private:
  // To the executor's thread. An answer is given in any case, also when the executor has ended.
  template <typename Request, typename Reply>
  void Bring(const rpc::ServingQueue& queue,
             void (WorkerCalls::*handler)(const Request&, Answer<Reply>)) {
    rpc::ServeUnary<Request, Reply>(
        &methods_, queue, [this, handler](const Request& request, Callback<Reply> respond) {
          executor_->Post(
              [this, handler, request, answer = Answer<Reply>(std::move(respond))]() mutable {
                const absl::StatusOr<WorkerCalls*> calls =
                    calls_(WorkerIndex(request.worker()), Incarnation(request.incarnation()));
                if (!calls.ok()) return answer(calls.status());
                ((*calls)->*handler)(request, std::move(answer));
              });
        });
  }

  const FindWorkerCalls calls_;
  Executor* const executor_;
  rpc::RawMethods methods_{Chief::service_full_name()};
};

}  // namespace

std::unique_ptr<rpc::Service> MakeChiefService(FindWorkerCalls calls, Executor* executor) {
  return std::make_unique<ChiefService>(std::move(calls), executor);
}

}  // namespace lockstep::chief
