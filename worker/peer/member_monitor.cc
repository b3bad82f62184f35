#include "worker/peer/member_monitor.h"

#include <utility>

#include "common/base/annotate.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kProbePeriod = absl::Seconds(1);
// A comparison that a member could not take is asked for again after this. It is a small message.
constexpr absl::Duration kRepeatPause = absl::Milliseconds(20);

}  // namespace

bool MayRepeat(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsNotFound(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsFailedPrecondition(status) ||
         absl::IsResourceExhausted(status) || absl::IsUnknown(status) || absl::IsDataLoss(status);
}

MemberMonitor::MemberMonitor(Options options)
    : options_(std::move(options)),
      is_probed_(options_.names.size()),
      watch_(options_.names, options_.patience) {}

void MemberMonitor::Begin(const Collective& collective) {
  {
    absl::MutexLock lock(&mutex_);
    if (is_closed_) return;
    is_running_ = true;
    watch_.Start(options_.clock->Monotonic());
  }
  CheckLater(collective);
}

void MemberMonitor::End() {
  absl::MutexLock lock(&mutex_);
  is_running_ = false;
}

void MemberMonitor::Close() {
  absl::MutexLock lock(&mutex_);
  is_closed_ = true;
}

void MemberMonitor::OnAnswered(int position) {
  absl::MutexLock lock(&mutex_);
  if (!is_closed_) watch_.OnAnswered(position, options_.clock->Monotonic());
}

void MemberMonitor::OnError(int position, const absl::Status& error) {
  absl::MutexLock lock(&mutex_);
  if (absl::IsUnavailable(error)) watch_.OnError(position, error);
}

void MemberMonitor::CompareWithNext(const Collective& collective, CompareRequest own,
                                    absl::AnyInvocable<void()> same) {
  collective->Enter();
  const int next = (options_.position + 1) % static_cast<int>(options_.names.size());
  CompareRequest request = own;
  *request.mutable_sender() = options_.self;
  options_.connections[next]->Compare(
      std::move(request), [this, collective, own = std::move(own),
                           same = std::move(same)](const absl::Status& status) mutable {
        if (status.ok()) {
          same();
        } else if (!MayRepeat(status)) {
          collective->Fail(status);
        } else if (collective->failure().ok()) {
          collective->Enter();
          options_.timer->After(kRepeatPause, [this, collective, own = std::move(own),
                                               same = std::move(same)]() mutable {
            if (collective->failure().ok()) {
              CompareWithNext(collective, std::move(own), std::move(same));
            }
            collective->Leave();
          });
        }
        collective->Leave();
      });
}

void MemberMonitor::CheckLater(const Collective& collective) {
  if (options_.names.size() == 1) return;
  {
    absl::MutexLock lock(&mutex_);
    if (will_look_) return;
    will_look_ = true;
  }
  options_.timer->After(kProbePeriod, [this, weak = std::weak_ptr<CollectiveActivity>(collective)] {
    if (const Collective alive = weak.lock()) CheckMembers(alive);
  });
}

void MemberMonitor::CheckMembers(const Collective& collective) {
  collective->Enter();
  absl::Status silence;
  bool goes_on = false;
  {
    absl::MutexLock lock(&mutex_);
    will_look_ = false;
    goes_on = is_running_ && !is_closed_;
    if (goes_on) {
      const absl::Duration now = options_.clock->Monotonic();
      watch_.OnAnswered(options_.position, now);
      silence = watch_.Check(now);
    }
  }
  if (!silence.ok()) {
    collective->Fail(silence);
  } else if (goes_on) {
    for (size_t position = 0; position < options_.names.size(); ++position) {
      Probe(collective, static_cast<int>(position));
    }
    CheckLater(collective);
  }
  collective->Leave();
}

void MemberMonitor::Probe(const Collective& collective, int position) {
  if (position == options_.position) return;
  {
    absl::MutexLock lock(&mutex_);
    if (is_probed_[position]) return;
    is_probed_[position] = true;
  }
  ProbeRequest request;
  *request.mutable_sender() = options_.self;
  options_.connections[position]->Probe(
      std::move(request), [this, collective, position](const absl::StatusOr<ProbeReply>& reply) {
        OnProbed(collective, position, reply);
      });
}

void MemberMonitor::OnProbed(const Collective& collective, int position,
                             const absl::StatusOr<ProbeReply>& reply) {
  const absl::Status& status = reply.status();
  // A member that has not joined the view yet answers, too.
  if (reply.ok() || absl::IsFailedPrecondition(status)) OnAnswered(position);
  OnError(position, status);
  {
    absl::MutexLock lock(&mutex_);
    is_probed_[position] = false;
  }
  if (absl::IsAborted(status)) return collective->Fail(status);
  if (!reply.ok() || reply->code() == 0) return;
  // Told to stop there, the member is gone for the others.
  const auto code = static_cast<absl::StatusCode>(reply->code());
  collective->Fail(Annotate(
      absl::Status(code == absl::StatusCode::kCancelled ? absl::StatusCode::kUnavailable : code,
                   reply->message()),
      options_.names[position]));
}

}  // namespace lockstep::worker
