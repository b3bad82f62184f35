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
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
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

FailoverChiefClient::FailoverChiefClient(Connect connect, std::vector<std::string> addresses,
                                         std::function<void(const std::string& address)> on_found)
    : connect_(std::move(connect)), num_chiefs_(addresses.size()), on_found_(std::move(on_found)) {
  absl::MutexLock lock(&mutex_);
  for (std::string& address : addresses) {
    auto connection = std::make_unique<Connection>(Connection{connect_(address)});
    chiefs_.push_back({std::move(address), std::move(connection)});
  }
}

FailoverChiefClient::~FailoverChiefClient() {
  std::vector<Chief> chiefs;
  std::vector<std::unique_ptr<Connection>> left;
  {
    absl::MutexLock lock(&mutex_);
    is_closing_ = true;
    mutex_.Await(absl::Condition(this, &FailoverChiefClient::IsAskingNobody));
    chiefs.swap(chiefs_);
    left.swap(left_);
  }
  // Calls in flight end here, and none follows.
  for (Chief& chief : chiefs) chief.connection->client.reset();
  for (const auto& connection : left) connection->client.reset();
}

std::string FailoverChiefClient::last_chief() const {
  absl::MutexLock lock(&mutex_);
  const std::string who = num_chiefs_ == 1 ? "the chief" : absl::StrCat("chief ", last_);
  return absl::StrCat(who, " (", chiefs_[last_].address, ")");
}

void FailoverChiefClient::SetAddresses(const std::vector<std::string>& addresses) {
  std::vector<std::unique_ptr<Connection>> unused;
  absl::MutexLock lock(&mutex_);
  unused = TakeUnused();
  for (size_t i = 0; i < chiefs_.size() && i < addresses.size() && !is_closing_; ++i) {
    if (chiefs_[i].address == addresses[i]) continue;
    left_.push_back(std::exchange(
        chiefs_[i].connection, std::make_unique<Connection>(Connection{connect_(addresses[i])})));
    chiefs_[i].address = addresses[i];
  }
}

std::vector<std::unique_ptr<FailoverChiefClient::Connection>> FailoverChiefClient::TakeUnused() {
  std::vector<std::unique_ptr<Connection>> unused;
  for (std::unique_ptr<Connection>& connection : left_) {
    if (connection->calls == 0) unused.push_back(std::move(connection));
  }
  std::erase(left_, nullptr);
  return unused;
}

FailoverChiefClient::Connection* FailoverChiefClient::BeginAsking(size_t chief) {
  std::vector<std::unique_ptr<Connection>> unused;
  absl::MutexLock lock(&mutex_);
  if (is_closing_) return nullptr;
  unused = TakeUnused();
  ++asking_;
  Connection* const connection = chiefs_[chief].connection.get();
  ++connection->calls;
  return connection;
}

void FailoverChiefClient::EndCall(Connection* connection) {
  absl::MutexLock lock(&mutex_);
  --connection->calls;
}

void FailoverChiefClient::EndAsking() {
  absl::MutexLock lock(&mutex_);
  --asking_;
}

void FailoverChiefClient::Start(const MethodInfo& method,
                                const google::protobuf::MessageLite& request,
                                google::protobuf::MessageLite* reply, StatusCallback done) {
  if (num_chiefs_ == 1) {
    Connection* const chief = BeginAsking(0);
    if (chief == nullptr) return done(absl::CancelledError("calls were cancelled"));
    chief->client->Start(method, request, reply,
                         [this, chief, done = std::move(done)](absl::Status status) mutable {
                           done(std::move(status));
                           EndCall(chief);
                         });
    return EndAsking();
  }
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
  Connection* const chief = BeginAsking(asking->chief);
  if (chief == nullptr) return asking->done(absl::CancelledError("calls were cancelled"));
  chief->client->Start(asking->method, *asking->request, asking->reply,
                       [this, chief, attempt = std::move(attempt)](absl::Status status) mutable {
                         OnAnswer(std::move(attempt), std::move(status));
                         EndCall(chief);
                       });
  EndAsking();
}

void FailoverChiefClient::OnAnswer(std::shared_ptr<Attempt> attempt, absl::Status status) {
  if (!IsNobody(status)) {
    std::string found;
    {
      absl::MutexLock lock(&mutex_);
      const bool is_other = std::exchange(last_, attempt->chief) != attempt->chief;
      if (is_other && !is_closing_) found = chiefs_[attempt->chief].address;
    }
    if (!found.empty() && on_found_) on_found_(found);
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
