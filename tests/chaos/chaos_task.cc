#include "tests/chaos/chaos_task.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kReturnPause = absl::Seconds(1);
// After SIGTERM: 20 s are the chief's for its save.
constexpr absl::Duration kEndGrace = absl::Seconds(25);

}  // namespace

ChaosTask::ChaosTask(const TaskId& id, std::vector<std::string> command, std::set<int> tolerated)
    : id_(id), name_(NameOf(id)), command_(std::move(command)), tolerated_(std::move(tolerated)) {
  Start();
}

void ChaosTask::SetNextEnvironment(std::vector<std::string> environment) {
  environment_ = std::move(environment);
}

void ChaosTask::Start() {
  process_ = std::make_unique<Process>(command_, std::exchange(environment_, {}));
}

void ChaosTask::End(int signal, Return how) {
  if (!is_up()) return;
  return_ = how;
  expected_ = 128 + signal;
  ends_by_ = Clock::Real()->Monotonic() + kEndGrace;
  process_->Signal(signal);
}

std::optional<std::string> ChaosTask::Tend(absl::Duration now) {
  if (returns_at_.has_value()) {
    if (now < *returns_at_) return std::nullopt;
    returns_at_.reset();
    Start();
    return std::nullopt;
  }
  const std::optional<int> code = process_->Wait(absl::ZeroDuration());
  if (!code.has_value()) {
    if (!expected_.has_value() || now < ends_by_) return std::nullopt;
    expected_.reset();
    return absl::StrCat(name_, " still runs ", absl::FormatDuration(kEndGrace), " after SIGTERM");
  }
  const bool is_true = code == expected_ || tolerated_.contains(*code);
  absl::StrAppend(&ended_, process_->Output(), "[ended with ", *code, "]\n");
  const Return how = std::exchange(return_, Return::kAsUp);
  if (is_true && (code == 128 + SIGKILL || how == Return::kAtOnce)) {
    Start();
  } else {
    returns_at_ = now + kReturnPause;
  }
  const std::optional<int> expected = std::exchange(expected_, std::nullopt);
  if (is_true) return std::nullopt;
  return absl::StrCat(name_, " ended with ", *code, ", expected ",
                      expected.has_value() ? absl::StrCat(*expected) : "to run on");
}

std::string ChaosTask::LogFrom(size_t offset) const {
  std::string log = ended_.substr(std::min(offset, ended_.size()));
  if (returns_at_.has_value()) return log;  // what the process has written is in `ended_`
  return log + process_->OutputFrom(offset - std::min(offset, ended_.size()));
}

}  // namespace lockstep::test
