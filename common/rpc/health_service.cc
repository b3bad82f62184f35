#include "common/rpc/health_service.h"

#include "absl/strings/str_cat.h"
#include "common/rpc/unary_method.h"

namespace lockstep::rpc {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

void HealthService::Serve(const ServingQueue& queue) {
  ServeUnary(&methods_, &Methods::RequestCheck, queue,
             [this](const HealthCheckRequest& request, Callback<HealthCheckResponse> respond) {
               HealthCheckResponse response;
               if (request.service().empty()) {
                 response.set_status(HealthCheckResponse::SERVING);
               } else if (request.service() == "ready") {
                 response.set_status(ready_.load(std::memory_order_relaxed)
                                         ? HealthCheckResponse::SERVING
                                         : HealthCheckResponse::NOT_SERVING);
               } else {
                 return respond(absl::NotFoundError(
                     absl::StrCat("no service \"", request.service(),
                                  "\"; expected none (is it alive?) or \"ready\"")));
               }
               respond(response);
             });
}

}  // namespace lockstep::rpc
