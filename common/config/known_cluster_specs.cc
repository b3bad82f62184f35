#include "common/config/known_cluster_specs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "common/config/cluster_spec.h"

namespace lockstep {
namespace {

// Workers come last in a canonical text.
absl::string_view WithoutWorkers(absl::string_view text) {
  if (absl::StartsWith(text, "worker ")) return "";
  const size_t workers = text.find("\nworker ");
  return workers == absl::string_view::npos ? text : text.substr(0, workers + 1);
}

}  // namespace

KnownClusterSpecs::KnownClusterSpecs(std::string text) : texts_{std::move(text)} {}

void KnownClusterSpecs::Add(std::string text) {
  absl::MutexLock lock(&mutex_);
  std::erase(texts_, text);
  texts_.insert(texts_.begin(), std::move(text));
  if (texts_.size() > kMost) texts_.pop_back();
}

std::vector<std::string> KnownClusterSpecs::texts() const {
  absl::MutexLock lock(&mutex_);
  return texts_;
}

std::string KnownClusterSpecs::DifferenceFrom(std::span<const absl::string_view> theirs,
                                              bool workers_may_differ, absl::string_view name_ours,
                                              absl::string_view name_theirs) const {
  const auto compared = [workers_may_differ](absl::string_view text) {
    return workers_may_differ ? WithoutWorkers(text) : text;
  };
  absl::MutexLock lock(&mutex_);
  // Once: finding where the workers begin reads all of a text.
  std::vector<absl::string_view> ours(texts_.size());
  std::ranges::transform(texts_, ours.begin(), compared);
  for (const absl::string_view text : theirs) {
    if (std::ranges::find(ours, compared(text)) != ours.end()) return "";
  }
  return DescribeDifference(ours.front(), compared(theirs.front()), name_ours, name_theirs);
}

}  // namespace lockstep
