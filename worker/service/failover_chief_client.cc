#include "worker/service/failover_chief_client.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {
namespace {

// A chief answers a registration after 2 s, any other call after 1 s, if only that there is nothing
// new. One that was stopped does not, and another one may command by then.
constexpr absl::Duration kRegistrationDeadline = absl::Seconds(4);
constexpr absl::Duration kOtherDeadline = absl::Seconds(2);

MethodInfo WithShortDeadline(MethodInfo method) {
  const bool registers = absl::string_view(method.path) == kRegisterTask.path;
  method.deadline = std::min(method.deadline, registers ? kRegistrationDeadline : kOtherDeadline);
  return method;
}

// Not the answer of a chief that commands.
bool IsNobody(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

}  // namespace

struct FailoverChiefClient::Attempt {
  MethodInfo method;
  std::unique_ptr<google::protobuf::MessageLite> request;
  google::protobuf::MessageLite* reply;
  StatusCallback done;
  size_t chief = 0;
  size_t asked = 0;      // chiefs
  std::string problems;  // of those
};

FailoverChiefClient::FailoverChiefClient(std::vector<std::unique_ptr<ChiefClient>> chiefs,
                                         std::function<void(size_t chief)> on_found)
    : num_chiefs_(chiefs.size()), on_found_(std::move(on_found)), chiefs_(std::move(chiefs)) {}

FailoverChiefClient::~FailoverChiefClient() {
  {
    absl::MutexLock lock(&mutex_);
    is_closing_ = true;
    mutex_.Await(absl::Condition(this, &FailoverChiefClient::IsAskingNobody));
  }
  // Calls in flight end here, and none follows.
  for (std::unique_ptr<ChiefClient>& chief : chiefs_) chief.reset();
}

ChiefClient* FailoverChiefClient::BeginAsking(size_t chief) {
  absl::MutexLock lock(&mutex_);
  if (is_closing_) return nullptr;
  ++asking_;
  return chiefs_[chief].get();
}

void FailoverChiefClient::EndAsking() {
  absl::MutexLock lock(&mutex_);
  --asking_;
}

void FailoverChiefClient::Start(const MethodInfo& method,
                                const google::protobuf::MessageLite& request,
                                google::protobuf::MessageLite* reply, StatusCallback done) {
  if (num_chiefs_ == 1) return chiefs_[0]->Start(method, request, reply, std::move(done));
  auto attempt = std::make_shared<Attempt>();
  attempt->method = WithShortDeadline(method);
  attempt->request.reset(request.New());
  attempt->request->CheckTypeAndMergeFrom(request);
  attempt->reply = reply;
  attempt->done = std::move(done);
  {
    absl::MutexLock lock(&mutex_);
    attempt->chief = last_;
  }
  Ask(std::move(attempt));
}

void FailoverChiefClient::Ask(std::shared_ptr<Attempt> attempt) {
  Attempt* const asking = attempt.get();
  ChiefClient* const chief = BeginAsking(asking->chief);
  if (chief == nullptr) return asking->done(absl::CancelledError("calls were cancelled"));
  chief->Start(asking->method, *asking->request, asking->reply,
               [this, attempt = std::move(attempt)](absl::Status status) mutable {
                 OnAnswer(std::move(attempt), std::move(status));
               });
  EndAsking();
}

void FailoverChiefClient::OnAnswer(std::shared_ptr<Attempt> attempt, absl::Status status) {
  if (!IsNobody(status)) {
    bool is_other = false;
    {
      absl::MutexLock lock(&mutex_);
      is_other = std::exchange(last_, attempt->chief) != attempt->chief;
    }
    if (is_other && on_found_) on_found_(attempt->chief);
    return attempt->done(std::move(status));
  }
  absl::StrAppend(&attempt->problems, attempt->problems.empty() ? "" : "; ", status.message());
  attempt->chief = (attempt->chief + 1) % num_chiefs_;
  if (++attempt->asked == num_chiefs_) {
    return attempt->done(absl::UnavailableError(attempt->problems));
  }
  Ask(std::move(attempt));
}

}  // namespace lockstep::worker
