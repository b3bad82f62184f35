#include "common/client/pull_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep {

PullPlan::PullPlan(const PullerOptions& options, std::span<const uint64_t> sizes)
    : options_(options), backoff_(options.patience) {
  uint64_t in_request = 0;
  for (size_t target = 0; target < sizes.size(); ++target) {
    for (uint64_t offset = 0; offset < sizes[target]; offset += options_.chunk_bytes) {
      const uint64_t size = std::min<uint64_t>(options_.chunk_bytes, sizes[target] - offset);
      if (requests_.empty() || in_request + size > options_.chunk_bytes) {
        requests_.emplace_back();
        in_request = 0;
      }
      requests_.back().pieces.push_back({target, offset, size});
      in_request += size;
    }
  }
}

void PullPlan::Start(GlobalStep version, absl::Duration now) {
  version_ = version;
  filled_ = 0;
  fatal_ = absl::OkStatus();
  backoff_.Succeeded(now);
  for (Request& request : requests_) request.state = State::kReady;
}

std::optional<PullPlan::Outgoing> PullPlan::Next(absl::Duration now) {
  if (!fatal_.ok() || in_flight_ >= options_.window || now < backoff_.not_before())
    return std::nullopt;
  for (size_t i = 0; i < requests_.size(); ++i) {
    Request& request = requests_[i];
    if (request.state != State::kReady) continue;
    request.state = State::kInFlight;
    request.version = version_;
    ++in_flight_;
    return Outgoing{i, version_};
  }
  return std::nullopt;
}

void PullPlan::OnReply(size_t index, GlobalStep version, absl::Duration now) {
  Request& request = requests_[index];
  --in_flight_;
  backoff_.Succeeded(now);
  request.state = State::kReady;
  if (version < request.version) {
    fatal_.Update(absl::InternalError(absl::StrCat("pull of version ", request.version.value(),
                                                   " was answered with ", version.value())));
    return;
  }
  if (version > version_) {
    version_ = version;
    filled_ = 0;
    for (Request& other : requests_)
      if (other.state == State::kFilled) other.state = State::kReady;
  }
  // An answer to a question of before is out of date: asked again.
  if (version < version_) return;
  request.state = State::kFilled;
  ++filled_;
}

void PullPlan::OnError(size_t index, const absl::Status& error, absl::Duration now) {
  --in_flight_;
  requests_[index].state = State::kReady;
  if (absl::IsDeadlineExceeded(error)) {
    // Parked until the version exists. A ps that hangs ends as UNAVAILABLE, by keepalive.
    backoff_.Succeeded(now);
  } else if (absl::IsResourceExhausted(error)) {
    backoff_.Refused(now);
  } else if (!absl::IsUnavailable(error)) {
    fatal_.Update(error);
  } else if (!backoff_.Failed(now)) {
    fatal_.Update(absl::UnavailableError(absl::StrCat(
        error.message(), " (tried for ", absl::FormatDuration(options_.patience), ")")));
  }
}

std::optional<absl::Duration> PullPlan::WakeAt() const {
  if (!fatal_.ok() || in_flight_ >= options_.window) return std::nullopt;
  const bool ready = std::any_of(requests_.begin(), requests_.end(), [](const Request& request) {
    return request.state == State::kReady;
  });
  return ready ? std::optional(backoff_.not_before()) : std::nullopt;
}

std::optional<absl::StatusOr<GlobalStep>> PullPlan::Result() const {
  if (in_flight_ > 0) return std::nullopt;
  if (!fatal_.ok()) return fatal_;
  if (filled_ < requests_.size()) return std::nullopt;
  return version_;
}

}  // namespace lockstep
