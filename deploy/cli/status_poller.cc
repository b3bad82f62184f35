#include "deploy/cli/status_poller.h"

#include <utility>

#include "absl/time/time.h"
#include "common/client/status_client.h"

namespace lockstep::deploy {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(500);
constexpr absl::Duration kTimeout = absl::Seconds(1);

}  // namespace

StatusPoller::StatusPoller(std::string address, std::shared_ptr<const rpc::Credentials> credentials)
    : address_(std::move(address)),
      credentials_(std::move(credentials)),
      thread_([this] { Poll(); }) {}

StatusPoller::~StatusPoller() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    stopped_.Signal();
  }
  thread_.join();
}

std::optional<ProcessStatus> StatusPoller::Latest() const {
  absl::MutexLock lock(&mutex_);
  return latest_;
}

void StatusPoller::Poll() {
  absl::MutexLock lock(&mutex_);
  while (!stopped_.AwaitFor(&mutex_, absl::Condition(&stop_), kPeriod)) {
    mutex_.Unlock();
    absl::StatusOr<ProcessStatus> status = FetchStatus(address_, kTimeout, credentials_.get());
    mutex_.Lock();
    if (status.ok()) latest_ = *std::move(status);
  }
}

}  // namespace lockstep::deploy
