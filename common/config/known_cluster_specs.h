// Which cluster specs a process has had. Two processes belong to one cluster if one of the specs
// that the one has had is one that the other one has had: so a changed spec may spread while they
// work together, and a spec that was never theirs is refused.
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
  // The oldest of more are forgotten.
  static constexpr size_t kMost = 4;

  // `text`: canonical, as all others here.
  explicit KnownClusterSpecs(std::string text);

  // It is the newest from now on, also one that is known: a task may move back.
  void Add(std::string text);
  // Newest first, at least one.
  std::vector<std::string> texts() const;

  // Empty if a process with these texts, newest first, belongs to this cluster; otherwise where the
  // newest of both differ, as DescribeDifference. `workers_may_differ`: of a job whose workers come
  // and go, in which another list of workers is no difference. `theirs` may hold anything.
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
