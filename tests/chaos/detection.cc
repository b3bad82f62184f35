#include "tests/chaos/detection.h"

#include "absl/strings/match.h"
#include "common/base/clock.h"

namespace lockstep::test {
namespace {

absl::Duration Now() { return Clock::Real()->Monotonic(); }

}  // namespace

Detection::Detection(const std::vector<std::unique_ptr<ChaosTask>>& tasks, const Fault& fault,
                     const FaultTasks& hit)
    : begin_(Now()), sign_(SignOf(fault)) {
  for (const auto& task : tasks) {
    if (!IsWitness(task->id(), hit)) continue;
    const TaskId named = task->id() == hit.task && hit.peer.has_value() ? *hit.peer : hit.task;
    sources_.push_back({.task = task.get(),
                        .sign = sign_.text.empty() ? NameOf(named) : sign_.text,
                        .read_to = task->LogFrom(0).size()});
  }
}

bool Detection::IsWitness(const TaskId& task, const FaultTasks& hit) const {
  switch (sign_.log) {
    case Sign::Log::kOthers:
      return task != hit.task;
    case Sign::Log::kBoth:
      return task == hit.task || task == hit.peer;
    case Sign::Log::kOwn:
      return task == hit.task;
    case Sign::Log::kChiefs:
      return task.role == Role::kChief;
    case Sign::Log::kNobodies:
      return false;
  }
  return false;
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
  const bool is_of_pair = sign_.log == Sign::Log::kBoth;
  const bool is_over =
      is_of_pair ? after_by_both_ != absl::InfiniteDuration() : after_ != absl::InfiniteDuration();
  if (is_over) return;
  size_t found = 0;
  for (Source& source : sources_) {
    if (!LookAt(&source)) continue;
    ++found;
    if (after_ != absl::InfiniteDuration()) continue;
    after_ = Now() - begin_;
    by_ = NameOf(source.task->id());
  }
  if (is_of_pair && found == sources_.size()) after_by_both_ = Now() - begin_;
}

}  // namespace lockstep::test
