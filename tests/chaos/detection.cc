#include "tests/chaos/detection.h"

#include "absl/strings/match.h"
#include "common/base/clock.h"

namespace lockstep::test {
namespace {

constexpr char kDiskIsFull[] = "No space left on device";

absl::Duration Now() { return Clock::Real()->Monotonic(); }

}  // namespace

Detection::Detection(const std::vector<std::unique_ptr<ChaosTask>>& tasks, const Fault& fault,
                     const FaultTasks& hit)
    : begin_(Now()) {
  // Of the kill that comes before a full disk, the name would tell.
  const std::string sign = fault.kind == FaultKind::kFullDisk ? kDiskIsFull : NameOf(hit.task);
  for (const auto& task : tasks) {
    const size_t read_to = task->LogFrom(0).size();
    if (fault.peer.has_value() && task->id() == hit.task) {
      sources_.push_back({task.get(), NameOf(*hit.peer), read_to});
    } else if (fault.peer.has_value() ? task->id() == hit.peer : task->id() != hit.task) {
      sources_.push_back({task.get(), sign, read_to});
    }
  }
}

void Detection::Look() {
  if (after_ != absl::InfiniteDuration()) return;
  for (Source& source : sources_) {
    const std::string news = source.task->LogFrom(source.read_to);
    if (absl::StrContains(news, source.sign)) {
      after_ = Now() - begin_;
      by_ = NameOf(source.task->id());
      return;
    }
    // The sign may have come in part.
    if (news.size() > source.sign.size()) source.read_to += news.size() - source.sign.size();
  }
}

}  // namespace lockstep::test
