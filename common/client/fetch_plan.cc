#include "common/client/fetch_plan.h"

#include <algorithm>
#include <array>
#include <limits>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// No grant keeps the version before the first step: an asynchronous ps answers with the newest.
constexpr GlobalStep kNewest(0);

// Reads that come to nothing before the bytes are asked for.
constexpr int kMaxOverwritten = 2;

struct OpenRequest {
  std::optional<size_t> index;
  uint64_t bytes = 0;
};

}  // namespace

void FetchPlan::Start(GlobalStep version, std::span<const Extent> targets, FetchKind kind) {
  Cut(targets);
  window_ = kind == FetchKind::kPresent ? options_.window : static_cast<int>(num_requests_);
  version_ = version;
  first_ready_ = 0;
  filled_ = 0;
  fatal_ = absl::OkStatus();
  retry_.OnSuccess();
}

uint64_t FetchPlan::MostBytes(const Extent& extent) const {
  if (extent.stays) return std::numeric_limits<uint64_t>::max();
  return extent.may_be_reference ? options_.shared_chunk_bytes : options_.fetch_chunk_bytes;
}

void FetchPlan::Cut(std::span<const Extent> targets) {
  num_requests_ = 0;
  // To which more can be added: variables of each kind take turns in a model.
  std::array<OpenRequest, 3> open;
  for (size_t target = 0; target < targets.size(); ++target) {
    const Extent& extent = targets[target];
    OpenRequest& last = open[extent.is_narrow ? 2 : extent.stays ? 1 : 0];
    const uint64_t most = MostBytes(extent);
    const uint64_t chunk = std::max<uint64_t>(1, most / extent.unit_bytes);
    for (uint64_t first = 0; first < extent.units; first += chunk) {
      const uint64_t count = std::min(chunk, extent.units - first);
      const uint64_t bytes = count * extent.unit_bytes;
      if (!last.index.has_value() || last.bytes + bytes > most ||
          requests_[*last.index].by_reference != extent.may_be_reference) {
        last = {AddRequest(extent)};
      }
      requests_[*last.index].pieces.push_back({target, first, count});
      last.bytes += bytes;
    }
  }
}

size_t FetchPlan::AddRequest(const Extent& first) {
  if (num_requests_ == requests_.size()) requests_.emplace_back();
  Request& request = requests_[num_requests_];
  request.pieces.clear();
  request.state = State::kReady;
  request.by_reference = first.may_be_reference;
  request.is_narrow = first.is_narrow;
  request.overwritten = 0;
  return num_requests_++;
}

std::optional<FetchPlan::Outgoing> FetchPlan::Next(absl::Duration now) {
  if (!fatal_.ok() || in_flight_ >= window_ || now < retry_.not_before()) return std::nullopt;
  while (first_ready_ < num_requests_) {
    const size_t index = first_ready_++;
    Request& request = requests_[index];
    if (request.state != State::kReady) continue;
    request.state = State::kInFlight;
    request.version = options_.asynchronous ? kNewest : version_;
    ++in_flight_;
    return Outgoing{index, request.version, request.by_reference, request.is_narrow};
  }
  return std::nullopt;
}

void FetchPlan::MakeReady(size_t request) {
  requests_[request].state = State::kReady;
  first_ready_ = std::min(first_ready_, request);
}

void FetchPlan::OnReply(size_t index, GlobalStep version) {
  Request& request = requests_[index];
  --in_flight_;
  retry_.OnSuccess();
  if (options_.asynchronous) {
    version_ = filled_ == 0 ? version : std::min(version_, version);
    request.state = State::kFilled;
    ++filled_;
    return;
  }
  if (version < request.version) {
    MakeReady(index);
    fatal_.Update(absl::InternalError(absl::StrCat("pull of version ", request.version.value(),
                                                   " was answered with ", version.value())));
    return;
  }
  if (version > version_) {
    version_ = version;
    filled_ = 0;
    for (size_t i = 0; i < num_requests_; ++i)
      if (requests_[i].state == State::kFilled) MakeReady(i);
  }
  // An answer to a question of before is out of date: asked again.
  if (version < version_) return MakeReady(index);
  request.state = State::kFilled;
  ++filled_;
}

void FetchPlan::OnError(size_t index, const absl::Status& error, absl::Duration now) {
  --in_flight_;
  MakeReady(index);
  // Requests that the ps has no room for do not all come again with each one that it answers.
  if (absl::IsResourceExhausted(error)) window_ = std::min(window_, options_.window);
  // Parked until the version exists: a deadline says nothing. A ps that hangs ends as UNAVAILABLE,
  // by keepalive.
  if (!retry_.OnFailure(error, now).has_value()) fatal_.Update(retry_.GivenUp(error));
}

void FetchPlan::OnUnanswered(size_t index) {
  --in_flight_;
  MakeReady(index);
}

void FetchPlan::OnOverwritten(size_t index) {
  Request& request = requests_[index];
  --in_flight_;
  retry_.OnSuccess();
  MakeReady(index);
  if (++request.overwritten >= kMaxOverwritten) request.by_reference = false;
}

std::optional<absl::Duration> FetchPlan::WakeAt() const {
  if (!fatal_.ok() || in_flight_ >= window_) return std::nullopt;
  for (size_t i = first_ready_; i < num_requests_; ++i)
    if (requests_[i].state == State::kReady) return retry_.not_before();
  return std::nullopt;
}

std::optional<absl::StatusOr<GlobalStep>> FetchPlan::Result() const {
  if (in_flight_ > 0) return std::nullopt;
  if (!fatal_.ok()) return fatal_;
  if (filled_ < num_requests_) return std::nullopt;
  return version_;
}

}  // namespace lockstep
