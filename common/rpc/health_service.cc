#include "common/rpc/health_service.h"

#include <functional>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "common/rpc/limits.h"
#include "common/rpc/unary_method.h"

namespace lockstep::rpc {
namespace {

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr size_t kShownName = 200;

grpc::Status StoppingStatus() {
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the process ends");
}

}  // namespace

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

HealthService::HealthService()
    : hooks_(std::make_shared<HealthWatch::Hooks>(HealthWatch::Hooks{
          .arrived = [this](const std::shared_ptr<HealthWatch>& watch) { Add(watch); },
          .left = [this](const std::shared_ptr<HealthWatch>& watch) { Remove(watch); }})) {}

void HealthService::Serve(const ServingQueue& queue) {
  const RawMethod check = {.path = kCheck,
                           .await = std::bind_front(&decltype(methods_)::RequestCheck, &methods_)};
  ServeUnary<HealthCheckRequest, HealthCheckResponse>(
      check, queue,
      [this](const HealthCheckRequest& request, Callback<HealthCheckResponse> respond) {
        respond(Check(request.service()));
      },
      kMaxHealthRequestBytes);
  HealthWatch::Await(hooks_, &methods_, queue);
}

HealthCheckResponse::ServingStatus HealthService::StatusOf(HealthSubject subject) const {
  if (subject == HealthSubject::kUnknown) return HealthCheckResponse::SERVICE_UNKNOWN;
  const bool serves = !is_stopping_ && (subject == HealthSubject::kLife || is_ready_);
  return serves ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

absl::StatusOr<HealthCheckResponse> HealthService::Check(const std::string& service) const {
  HealthCheckResponse response;
  {
    absl::MutexLock lock(&mutex_);
    response.set_status(StatusOf(SubjectOf(service)));
  }
  if (response.status() != HealthCheckResponse::SERVICE_UNKNOWN) return response;
  return absl::NotFoundError(absl::StrCat("no service \"", Printable(service, kShownName),
                                          "\"; expected none (is it alive?) or \"ready\""));
}

void HealthService::Add(const std::shared_ptr<HealthWatch>& watch) {
  absl::MutexLock lock(&mutex_);
  if (is_stopping_) {
    return watch->End(StatusOf(watch->subject()), StoppingStatus());
  }
  if (watches_.size() >= kMaxHealthWatches) {
    return watch->End(std::nullopt,
                      grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                   absl::StrCat(kMaxHealthWatches,
                                                " calls watch this process already. Remedy: "
                                                "Health.Check")));
  }
  watches_.insert(watch);
  watch->SendStatus(StatusOf(watch->subject()));
}

void HealthService::Remove(const std::shared_ptr<HealthWatch>& watch) {
  absl::MutexLock lock(&mutex_);
  watches_.erase(watch);
}

void HealthService::SetReady(bool ready) {
  absl::MutexLock lock(&mutex_);
  is_ready_ = ready;
  for (const auto& watch : watches_) watch->SendStatus(StatusOf(watch->subject()));
}

void HealthService::Stop() {
  absl::MutexLock lock(&mutex_);
  is_stopping_ = true;
  for (const auto& watch : watches_) watch->End(StatusOf(watch->subject()), StoppingStatus());
}

}  // namespace lockstep::rpc
