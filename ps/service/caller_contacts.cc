#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/service/worker_contacts.h"

namespace lockstep::ps {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(250);
// A worker that asks for less would fill the log.
constexpr absl::Duration kShortestLease = absl::Seconds(1);

}  // namespace

WorkerContacts::WorkerContacts(const Clock* clock,
                               std::function<bool(const WorkerIdentity&)> is_member,
                               std::function<void(absl::string_view)> log)
    : clock_(clock), is_member_(std::move(is_member)), log_(std::move(log)) {}

void WorkerContacts::Start(Timer* timer) {
  absl::MutexLock lock(&mutex_);
  timer_ = timer;
  if (!contacts_.empty()) Arm();
}

void WorkerContacts::Stop() {
  absl::MutexLock lock(&mutex_);
  timer_ = nullptr;
}

void WorkerContacts::OnPing(const WorkerIdentity& worker, absl::Duration lease) {
  std::optional<std::string> line;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = clock_->Monotonic();
    const uint32_t index = worker.worker.value();
    auto found = contacts_.find(index);
    if (found == contacts_.end() || found->second.worker.incarnation != worker.incarnation) {
      const SilenceWatch watch({.peer = absl::StrCat("worker ", index),
                                .told_after = std::max(lease, kShortestLease),
                                .period = kPeriod,
                                .reason = "none of its pings comes"},
                               now);
      found = contacts_.insert_or_assign(index, Contact{worker, watch}).first;
    }
    found->second.worker = worker;
    line = found->second.watch.OnHeard(now);
    if (!is_armed_) Arm();
  }
  if (line.has_value()) log_(*line);
}

void WorkerContacts::Look() {
  std::vector<std::pair<WorkerIdentity, std::string>> lines;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = clock_->Monotonic();
    for (auto& [index, contact] : contacts_) {
      const auto line = contact.watch.Look(now);
      if (line.has_value()) lines.emplace_back(contact.worker, *line);
    }
    is_armed_ = false;
    if (!contacts_.empty()) Arm();
  }
  for (const auto& [worker, line] : lines) {
    if (is_member_(worker)) {
      log_(line);
    } else {
      Forget(worker);
    }
  }
}

void WorkerContacts::Forget(const WorkerIdentity& worker) {
  absl::MutexLock lock(&mutex_);
  const auto found = contacts_.find(worker.worker.value());
  if (found != contacts_.end() && found->second.worker.incarnation == worker.incarnation) {
    contacts_.erase(found);
  }
}

void WorkerContacts::Arm() {
  if (timer_ == nullptr) return;
  is_armed_ = true;
  timer_->After(kPeriod, [this] { Look(); });
}

}  // namespace lockstep::ps
