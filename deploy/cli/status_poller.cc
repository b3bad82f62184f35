#include "deploy/cli/status_poller.h"

#include <utility>

#include "absl/time/time.h"

namespace lockstep::deploy {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(500);
constexpr absl::Duration kTimeout = absl::Seconds(1);

// A chief that ends before it has trained tells of other states, too.
bool TellsOfTraining(const ProcessStatus& status) {
  return status.state() == "training" || status.global_step() > status.job().start_step();
}

}  // namespace

StatusPoller::StatusPoller(const std::vector<std::string>& chiefs,
                           std::shared_ptr<const rpc::Credentials> credentials)
    : credentials_(std::move(credentials)) {
  for (const std::string& chief : chiefs) {
    chiefs_.push_back(std::make_unique<StatusReader>(chief, credentials_.get()));
  }
  thread_ = std::thread([this] { Poll(); });
}

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

bool StatusPoller::HasBegun() const {
  absl::MutexLock lock(&mutex_);
  return has_begun_;
}

void StatusPoller::Poll() {
  absl::MutexLock lock(&mutex_);
  while (!stopped_.AwaitFor(&mutex_, absl::Condition(&stop_), kPeriod)) {
    mutex_.Unlock();
    std::optional<ProcessStatus> status = Ask();
    mutex_.Lock();
    if (!status.has_value()) continue;
    has_begun_ = has_begun_ || TellsOfTraining(*status);
    latest_ = *std::move(status);
  }
}

std::optional<ProcessStatus> StatusPoller::Ask() {
  for (size_t asked = 0; asked < chiefs_.size() && !IsStopping(); ++asked) {
    absl::StatusOr<ProcessStatus> status = chiefs_[commander_]->Read(kTimeout);
    if (status.ok() && status->has_job()) return *std::move(status);
    commander_ = (commander_ + 1) % chiefs_.size();
  }
  return std::nullopt;
}

bool StatusPoller::IsStopping() const {
  absl::MutexLock lock(&mutex_);
  return stop_;
}

}  // namespace lockstep::deploy
