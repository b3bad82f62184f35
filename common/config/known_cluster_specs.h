// KnownClusterSpecs holds the cluster specs that a process has had. Two processes belong to one
// cluster if both have had the same spec at some time. So a changed spec may spread while they work
// together, and a spec that was never theirs is refused.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace lockstep {

// Thread-safe.
class KnownClusterSpecs {
 public:
  // If there are more, the oldest are forgotten.
  static constexpr size_t kMost = 4;

  // `text`: canonical, as all others here.
  explicit KnownClusterSpecs(std::string text);

  // Makes `text` the newest, also if it is known: a task may move back.
  void Add(std::string text);
  // Newest first, at least one.
  std::vector<std::string> texts() const;

  // Empty if a process with these texts, newest first, belongs to this cluster; otherwise the
  // difference of the newest of both, as DescribeDifference. `workers_may_differ`: another list of
  // workers is no difference, because the job's workers come and go. `theirs` may hold anything.
  std::string DifferenceFrom(std::span<const absl::string_view> theirs, bool workers_may_differ,
                             absl::string_view name_ours, absl::string_view name_theirs) const;

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> texts_ ABSL_GUARDED_BY(mutex_);  // newest first
};

// `newest`, then `earlier` (of a message), for DifferenceFrom. Views of both.
template <typename Texts>
std::vector<absl::string_view> TextsOf(const std::string& newest, const Texts& earlier) {
  std::vector<absl::string_view> texts = {newest};
  texts.insert(texts.end(), earlier.begin(), earlier.end());
  return texts;
}

// Fills `cluster` and `earlier_clusters` of a message.
template <typename Message>
void FillTexts(const std::vector<std::string>& texts, Message* message) {
  message->set_cluster(texts.front());
  message->mutable_earlier_clusters()->Assign(texts.begin() + 1, texts.end());
}

}  // namespace lockstep
