#include "common/rpc/refusal_sender.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/rpc/limits.h"

namespace lockstep::rpc {

std::string CallerName(const std::optional<security::Caller>& caller,
                       const grpc::ServerContextBase& context) {
  if (caller.has_value()) return security::ToString(*caller);
  std::string peer = context.peer();  // "ipv4:127.0.0.1:40312"
  peer.resize(std::min(peer.size(), peer.rfind(':')));
  return peer;
}

void RefusalSender::Send(const RefusedCall& refused, Answer send) {
  if (!security::IsRefusal(refused.code)) return send();
  const std::string caller = CallerName(refused.caller, refused.context);
  std::optional<std::string> line;
  const bool is_held = TryHold(refused.call, caller, refused.message_bytes, &send, &line);
  if (line.has_value()) log::Warning(*line);
  if (!is_held) send();
}

bool RefusalSender::TryHold(const void* call, absl::string_view caller, uint64_t message_bytes,
                            Answer* send, std::optional<std::string>* line) {
  absl::Duration due;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = clock_->Monotonic();
    const absl::Duration hold = pace_.Hold(caller, message_bytes, now);
    if (hold == absl::ZeroDuration() || has_stopped_ || held_.size() >= kMaxHeldRefusals) {
      return false;
    }
    *line = lines_.Admit(absl::StrCat("answers refused calls of ", caller, " late: more than ",
                                      security::RefusalPace::kAtOnce, " at once or one each ",
                                      absl::FormatDuration(security::RefusalPace::kInterval)),
                         now);
    due = now + hold;
    held_.emplace(Due(due, call), std::move(*send));
    due_of_.emplace(call, due);
    if (due >= armed_for_) return true;
    armed_for_ = due;
  }
  Arm(due);
  return true;
}

void RefusalSender::Arm(absl::Duration due) {
  timer_->After(due - clock_->Monotonic(), [this, due] { SendDue(due); });
}

void RefusalSender::SendDue(absl::Duration due) {
  std::vector<Answer> answers;
  absl::Duration next = absl::InfiniteDuration();
  {
    absl::MutexLock lock(&mutex_);
    if (due != armed_for_) return;
    const absl::Duration now = clock_->Monotonic();
    while (!held_.empty() && held_.begin()->first.first <= now) {
      due_of_.erase(held_.begin()->first.second);
      answers.push_back(std::move(held_.begin()->second));
      held_.erase(held_.begin());
    }
    if (!held_.empty()) next = held_.begin()->first.first;
    armed_for_ = next;
  }
  if (next != absl::InfiniteDuration()) Arm(next);
  for (Answer& send : answers) send();
}

void RefusalSender::Drop(const void* call) {
  Answer dropped;  // destroyed without the lock: a call may go with it
  absl::MutexLock lock(&mutex_);
  const auto found = due_of_.find(call);
  if (found == due_of_.end()) return;
  const auto held = held_.find(Due(found->second, call));
  dropped = std::move(held->second);
  held_.erase(held);
  due_of_.erase(found);
}

size_t RefusalSender::num_held() {
  absl::MutexLock lock(&mutex_);
  return held_.size();
}

void RefusalSender::Stop() {
  std::map<Due, Answer> held;
  {
    absl::MutexLock lock(&mutex_);
    has_stopped_ = true;
    held.swap(held_);
    due_of_.clear();
  }
  for (auto& [due, send] : held) send();
}

}  // namespace lockstep::rpc
