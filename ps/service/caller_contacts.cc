#include "ps/service/caller_contacts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace lockstep::ps {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(250);
// A caller that asks for less would fill the log.
constexpr absl::Duration kShortestLease = absl::Seconds(1);
constexpr absl::Duration kLongestLease = absl::Hours(24);
// After it has been named first.
constexpr absl::Duration kForgotten = absl::Seconds(15);

}  // namespace

CallerContacts::CallerContacts(const Clock* clock,
                               std::function<bool(const WorkerIdentity&)> is_member,
                               std::function<void(absl::string_view)> log)
    : clock_(clock), is_member_(std::move(is_member)), log_(std::move(log)) {}

void CallerContacts::Start(Timer* timer) {
  absl::MutexLock lock(&mutex_);
  timer_ = timer;
  if (!contacts_.empty()) Arm();
}

void CallerContacts::Stop() {
  absl::MutexLock lock(&mutex_);
  timer_ = nullptr;
}

void CallerContacts::OnPing(const WorkerIdentity& worker, absl::Duration lease) {
  std::optional<std::string> line;
  {
    absl::MutexLock lock(&mutex_);
    line = RecordPing(absl::StrCat("worker ", worker.worker.value()), worker, lease);
  }
  if (line.has_value()) log_(*line);
}

void CallerContacts::OnPing(const Server& server, absl::Duration lease) {
  const std::string name =
      absl::StrCat(server.role == Server::kChief ? "chief " : "ps ", server.index);
  std::optional<std::string> line;
  {
    absl::MutexLock lock(&mutex_);
    if (!contacts_.contains(name)) MakeRoomForServer(clock_->Monotonic());
    line = RecordPing(name, std::nullopt, lease);
  }
  if (line.has_value()) log_(*line);
}

void CallerContacts::MakeRoomForServer(absl::Duration now) {
  size_t servers = 0;
  auto most_silent = contacts_.end();
  for (auto contact = contacts_.begin(); contact != contacts_.end(); ++contact) {
    if (contact->second.worker.has_value()) continue;
    ++servers;
    if (most_silent == contacts_.end() ||
        contact->second.watch.Silence(now) > most_silent->second.watch.Silence(now)) {
      most_silent = contact;
    }
  }
  if (servers >= kMostServers) contacts_.erase(most_silent);
}

std::optional<std::string> CallerContacts::RecordPing(const std::string& name,
                                                      const std::optional<WorkerIdentity>& worker,
                                                      absl::Duration lease) {
  const absl::Duration now = clock_->Monotonic();
  lease = std::clamp(lease, kShortestLease, kLongestLease);
  auto found = contacts_.find(name);
  const bool is_successor = found != contacts_.end() && worker.has_value() &&
                            found->second.worker->incarnation != worker->incarnation;
  if (found == contacts_.end() || is_successor || found->second.lease != lease) {
    const SilenceWatch watch(
        {.peer = name, .told_after = lease, .period = kPeriod, .reason = "none of its pings comes"},
        now);
    found = contacts_.insert_or_assign(name, Contact{worker, lease, watch}).first;
  }
  found->second.worker = worker;
  if (!is_armed_) Arm();
  return found->second.watch.OnHeard(now);
}

bool CallerContacts::IsMissed(const Contact& contact, absl::Duration now) const {
  if (contact.watch.Silence(now) >= contact.lease + kForgotten) return false;
  return !contact.worker.has_value() || is_member_(*contact.worker);
}

void CallerContacts::CheckSilences() {
  const absl::Duration now = clock_->Monotonic();
  std::vector<std::pair<Contacts::value_type, std::string>> silent;
  {
    absl::MutexLock lock(&mutex_);
    for (auto& contact : contacts_) {
      const auto line = contact.second.watch.CheckSilence(now);
      if (line.has_value()) silent.emplace_back(contact, *line);
    }
    is_armed_ = false;
    if (!contacts_.empty()) Arm();
  }
  for (const auto& [contact, line] : silent) {
    const auto& [name, of] = contact;
    if (IsMissed(of, now)) {
      log_(line);
      continue;
    }
    absl::MutexLock lock(&mutex_);
    // It may have been heard of meanwhile.
    const auto found = contacts_.find(name);
    if (found != contacts_.end() && found->second.watch.Silence(now) > absl::ZeroDuration()) {
      contacts_.erase(found);
    }
  }
}

void CallerContacts::Arm() {
  if (timer_ == nullptr) return;
  is_armed_ = true;
  timer_->After(kPeriod, [this] { CheckSilences(); });
}

}  // namespace lockstep::ps
