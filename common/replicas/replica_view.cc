#include "common/replicas/replica_view.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

absl::Status Wrong(uint64_t number, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("replica view ", number, ": ", problem));
}

}  // namespace

bool ReplicaView::Has(WorkerIndex worker) const {
  return std::ranges::binary_search(workers, worker);
}

ReplicaShare ReplicaView::ShareOf(WorkerIndex worker) const {
  const auto found = std::ranges::lower_bound(workers, worker);
  const bool is_in = found != workers.end() && *found == worker;
  return {.view = number,
          .total = total(),
          .position = is_in ? static_cast<uint32_t>(found - workers.begin()) : total()};
}

absl::Status ReplicaView::Check() const {
  if (number == 0) return Wrong(number, "expected a number from 1 on");
  if (first < GlobalStep(0)) {
    return Wrong(number, absl::StrCat("first: expected a step from 0 on, got ", first.value()));
  }
  if (workers.empty()) return Wrong(number, "expected at least one worker");
  if (std::ranges::adjacent_find(workers, std::greater_equal<WorkerIndex>()) != workers.end()) {
    return Wrong(number, "expected workers in ascending order, each once");
  }
  if (aggregate >= 1 && aggregate <= total()) return absl::OkStatus();
  return Wrong(number, absl::StrCat("aggregate: expected 1 to ", total(), ", got ", aggregate));
}

const ReplicaView* ReplicaViews::At(GlobalStep step) const {
  const auto after = std::ranges::upper_bound(views_, step, {}, &ReplicaView::first);
  return after == views_.begin() ? nullptr : &*std::prev(after);
}

absl::Status ReplicaViews::Add(ReplicaView view) {
  LOCKSTEP_RETURN_IF_ERROR(view.Check());
  if (!views_.empty() && view.number <= newest().number) {
    return Wrong(view.number, absl::StrCat("it comes after view ", newest().number));
  }
  if (!views_.empty() && view.first <= newest().first) {
    return Wrong(view.number, absl::StrCat("first: expected a step after ", newest().first.value(),
                                           ", got ", view.first.value()));
  }
  views_.push_back(std::move(view));
  return absl::OkStatus();
}

void ReplicaViews::ForgetBefore(GlobalStep step) {
  const auto after = std::ranges::upper_bound(views_, step, {}, &ReplicaView::first);
  if (after != views_.begin()) views_.erase(views_.begin(), std::prev(after));
}

}  // namespace lockstep
