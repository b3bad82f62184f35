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
    : begin_(Now()), is_of_pair_(fault.peer.has_value()) {
  // Of the kill that comes before a full disk, the name would tell.
  const std::string sign = fault.kind == FaultKind::kFullDisk ? kDiskIsFull : NameOf(hit.task);
  for (const auto& task : tasks) {
    const size_t read_to = task->LogFrom(0).size();
    if (is_of_pair_ && task->id() == hit.task) {
      sources_.push_back({task.get(), NameOf(*hit.peer), read_to});
    } else if (is_of_pair_ ? task->id() == hit.peer : task->id() != hit.task) {
      sources_.push_back({task.get(), sign, read_to});
    }
  }
}

bool Detection::LookAt(Source* source) {
  if (source->is_found) return true;
  const std::string news = source->task->LogFrom(source->read_to);
  source->is_found = absl::StrContains(news, source->sign);
  // The sign may have come in part.
  if (news.size() > source->sign.size()) source->read_to += news.size() - source->sign.size();
  return source->is_found;
}

void Detection::ReadLogs() {
  const bool is_over =
      is_of_pair_ ? after_by_both_ != absl::InfiniteDuration() : after_ != absl::InfiniteDuration();
  if (is_over) return;
  size_t found = 0;
  for (Source& source : sources_) {
    if (!LookAt(&source)) continue;
    ++found;
    if (after_ != absl::InfiniteDuration()) continue;
    after_ = Now() - begin_;
    by_ = NameOf(source.task->id());
  }
  if (is_of_pair_ && found == sources_.size()) after_by_both_ = Now() - begin_;
}

}  // namespace lockstep::test
