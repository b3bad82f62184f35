#include "common/contact/peer_contact.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

// Silence is noticed so much later than a lease at most.
constexpr absl::Duration kPeriod = absl::Milliseconds(250);
constexpr int kPingsPerLease = 4;

bool WasReached(const absl::Status& answer) {
  return !absl::IsUnavailable(answer) && !absl::IsDeadlineExceeded(answer);
}

}  // namespace

PeerContact::PeerContact(PeerContactOptions options, std::string peer,
                         std::unique_ptr<PeerPing> ping)
    : options_(std::move(options)),
      gate_(std::make_shared<Gate>()),
      watch_(WatchOf(std::move(peer))),
      is_watched_(!options_.waits_for_first) {
  ping_ = std::move(ping);
  Tick();
}

SilenceWatch PeerContact::WatchOf(std::string peer) const {
  return SilenceWatch({.peer = std::move(peer),
                       .told_after = options_.lease,
                       .period = kPeriod,
                       .reason = "it does not answer"},
                      options_.clock->Monotonic());
}

PeerContact::~PeerContact() {
  gate_->Close();
  std::unique_ptr<PeerPing> ping;
  std::vector<Left> left;
  std::vector<std::unique_ptr<PeerPing>> idle;
  {
    absl::MutexLock lock(&mutex_);
    is_muted_ = true;
    ping.swap(ping_);
    left.swap(left_);
    idle.swap(idle_);
  }
}

void PeerContact::MoveTo(std::string peer, std::unique_ptr<PeerPing> ping) {
  absl::MutexLock lock(&mutex_);
  ping_.swap(ping);
  if (is_asked_) {
    left_.push_back({generation_, std::move(ping)});
  } else {
    idle_.push_back(std::move(ping));
  }
  ++generation_;
  watch_ = WatchOf(std::move(peer));
  is_asked_ = false;
  next_ask_ = -absl::InfiniteDuration();
  is_watched_ = !options_.waits_for_first;
}

void PeerContact::CountSilence() {
  absl::MutexLock lock(&mutex_);
  if (is_watched_) return;
  is_watched_ = true;
  watch_.OnHeard(options_.clock->Monotonic());
}

void PeerContact::Mute() {
  absl::MutexLock lock(&mutex_);
  is_muted_ = true;
}

void PeerContact::Tick() {
  const Gate::Pass inside = gate_->Enter();
  if (!inside) return;
  PeerPing* ping = nullptr;
  uint64_t generation = 0;
  std::optional<std::string> line;
  std::vector<std::unique_ptr<PeerPing>> idle;  // destroyed without the lock
  {
    absl::MutexLock lock(&mutex_);
    if (is_muted_) return;
    idle.swap(idle_);
    const absl::Duration now = options_.clock->Monotonic();
    if (is_watched_) line = watch_.CheckSilence(now);
    if (!is_asked_ && now >= next_ask_) {
      is_asked_ = true;
      next_ask_ = now + options_.lease / kPingsPerLease;
      ping = ping_.get();
      generation = generation_;
    }
  }
  if (line.has_value()) options_.log(*line);
  if (ping != nullptr) {
    ping->Start(options_.lease / 2,
                [this, generation](const absl::Status& answer) { OnAnswer(generation, answer); });
  }
  options_.timer->After(kPeriod, [this, gate = gate_] {
    if (const Gate::Pass waits = gate->Enter()) Tick();
  });
}

void PeerContact::OnAnswer(uint64_t generation, const absl::Status& answer) {
  std::optional<std::string> line;
  bool is_first = false;
  {
    absl::MutexLock lock(&mutex_);
    if (generation != generation_) {
      const auto left = std::ranges::find(left_, generation, &Left::generation);
      if (left == left_.end()) return;
      idle_.push_back(std::move(left->ping));
      left_.erase(left);
      return;
    }
    is_asked_ = false;
    if (is_muted_) return;  // the call may have ended with this contact
    if (WasReached(answer)) {
      is_watched_ = true;
      is_first = !std::exchange(was_reached_, true);
      line = watch_.OnHeard(options_.clock->Monotonic());
    } else {
      watch_.OnFailure(std::string(answer.message()));
    }
  }
  if (line.has_value()) options_.log(*line);
  if (is_first && options_.on_reached) options_.on_reached();
}

}  // namespace lockstep
