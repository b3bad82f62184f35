#include "ps/service/command_watch.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "common/base/limits.h"

namespace lockstep::ps {
namespace {

bool MustWait(uint64_t term, const CommandStatus& status) {
  if (term == 0) return status.state() == CommandStatus::NONE;
  return status.state() == CommandStatus::HELD && status.term() == term;
}

WatchCommandReply ReplyOf(const CommandStatus& status) {
  WatchCommandReply reply;
  *reply.mutable_command() = status;
  return reply;
}

absl::Status Stopping() { return absl::UnavailableError("the ps is stopping"); }

}  // namespace

void CommandWatch::Start(Timer* timer) {
  absl::MutexLock lock(&mutex_);
  timer_ = timer;
  Arm();
}

void CommandWatch::Stop() {
  std::list<Parked> parked;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    timer_ = nullptr;
    parked.swap(parked_);
  }
  for (Parked& call : parked) call.done(Stopping());
}

void CommandWatch::Renew(const LeaseHolder& holder) {
  Change([&](ChiefLease* lease, absl::Duration now) { lease->Renew(holder, now); });
}

void CommandWatch::Release(Incarnation chief) {
  Change([&](ChiefLease* lease, absl::Duration) { lease->Release(chief); });
}

void CommandWatch::EndJob(int exit_code, std::string reason) {
  Change([&](ChiefLease* lease, absl::Duration) { lease->EndJob(exit_code, std::move(reason)); });
}

void CommandWatch::EndJob(Incarnation chief, int exit_code, std::string reason) {
  Change([&](ChiefLease* lease, absl::Duration) {
    lease->EndJob(chief, exit_code, std::move(reason));
  });
}

CommandStatus CommandWatch::Status() const {
  absl::MutexLock lock(&mutex_);
  return lease_.Status(clock_->Monotonic());
}

bool CommandWatch::MayBeAsked() const {
  absl::MutexLock lock(&mutex_);
  return was_watched_ && lease_.Status(clock_->Monotonic()).state() == CommandStatus::JOB_OVER;
}

void CommandWatch::Watch(const WatchCommandRequest& request, Callback<WatchCommandReply> done) {
  std::list<Parked> replaced;
  absl::Status why = absl::UnavailableError("the call was issued again");
  absl::StatusOr<WatchCommandReply> answer = Stopping();
  {
    absl::MutexLock lock(&mutex_);
    const CommandStatus status = lease_.Status(clock_->Monotonic());
    was_watched_ = true;
    if (!stopped_) answer = ReplyOf(status);
    if (!stopped_ && MustWait(request.term(), status)) {
      auto before = std::ranges::find(parked_, request.caller(), &Parked::caller);
      if (before == parked_.end() && parked_.size() >= limits::kMaxWatchers) {
        before = parked_.begin();
        why = absl::ResourceExhaustedError("too many standby chiefs wait. Remedy: start fewer");
      }
      if (before != parked_.end()) replaced.splice(replaced.end(), parked_, before);
      parked_.push_back({request.caller(), request.term(), std::move(done)});
      done = nullptr;
      Arm();
    }
  }
  for (Parked& call : replaced) call.done(why);
  if (done) done(std::move(answer));
}

void CommandWatch::Change(const std::function<void(ChiefLease*, absl::Duration now)>& change) {
  std::vector<Callback<WatchCommandReply>> answered;
  CommandStatus status;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = clock_->Monotonic();
    change(&lease_, now);
    status = lease_.Status(now);
    answered = TakeAnswered(status);
    Arm();
  }
  for (Callback<WatchCommandReply>& done : answered) done(ReplyOf(status));
}

std::vector<Callback<WatchCommandReply>> CommandWatch::TakeAnswered(const CommandStatus& status) {
  std::vector<Callback<WatchCommandReply>> answered;
  for (auto call = parked_.begin(); call != parked_.end();) {
    if (MustWait(call->term, status)) {
      ++call;
      continue;
    }
    answered.push_back(std::move(call->done));
    call = parked_.erase(call);
  }
  return answered;
}

void CommandWatch::Arm() {
  const absl::Duration now = clock_->Monotonic();
  const absl::Duration end = now + lease_.Left(now);
  if (timer_ == nullptr || parked_.empty() || end >= armed_for_) return;
  armed_for_ = end;
  // A timer of milliseconds may be early by one.
  timer_->After(end - now + absl::Milliseconds(1), [this] {
    Change([this](ChiefLease*, absl::Duration) {
      mutex_.AssertHeld();
      armed_for_ = absl::InfiniteDuration();
    });
  });
}

}  // namespace lockstep::ps
