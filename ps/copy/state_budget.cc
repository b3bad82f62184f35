#include "ps/copy/state_budget.h"

#include <algorithm>

namespace lockstep::ps {
namespace {

// Of a step's time without the part. The rest up to 1.5 is for steps and parts that take longer
// than the ones before.
constexpr double kShare = 0.3;
// Weight of the newest measurement.
constexpr double kNewest = 0.5;
constexpr double kMebibyte = 1 << 20;

absl::Duration Smooth(absl::Duration before, absl::Duration now) {
  return before + (now - before) * kNewest;
}

}  // namespace

StateBudget::StateBudget(uint64_t state_bytes, uint64_t least_bytes)
    : least_bytes_(least_bytes),
      most_bytes_(std::max(least_bytes, state_bytes / 8)),
      next_bytes_(least_bytes) {}

void StateBudget::OnPart(absl::Duration step, uint64_t bytes, absl::Duration part) {
  if (bytes == 0) return;
  const absl::Duration mebibyte = part * (kMebibyte / static_cast<double>(bytes));
  step_ = has_measured_ ? Smooth(step_, step) : step;
  mebibyte_ = has_measured_ ? Smooth(mebibyte_, mebibyte) : mebibyte;
  has_measured_ = true;
  const uint64_t most = std::min(most_bytes_, 2 * next_bytes_);
  const double fits = mebibyte_ > absl::ZeroDuration()
                          ? kShare * absl::FDivDuration(step_, mebibyte_) * kMebibyte
                          : static_cast<double>(most);
  next_bytes_ = fits >= static_cast<double>(most)
                    ? most
                    : std::max(least_bytes_, static_cast<uint64_t>(std::max(0.0, fits)));
}

}  // namespace lockstep::ps
