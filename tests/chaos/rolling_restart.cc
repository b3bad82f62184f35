#include "tests/chaos/rolling_restart.h"

#include <signal.h>

#include <optional>
#include <utility>

namespace lockstep::test {
namespace {

// Answers with new steps: more than a step that was under way.
constexpr int kAdvances = 5;

class RollingRestart : public OngoingFault {
 public:
  explicit RollingRestart(std::vector<ChaosTask*> tasks) : tasks_(std::move(tasks)) { EndNext(); }

  bool Advance(int num_advances) override {
    if (!tasks_[next_ - 1]->is_up()) return false;
    if (!advances_when_up_.has_value()) advances_when_up_ = num_advances;
    if (num_advances < *advances_when_up_ + kAdvances) return false;
    if (next_ == tasks_.size()) return true;
    EndNext();
    return false;
  }
  int part() const override { return static_cast<int>(next_); }

 private:
  void EndNext() {
    tasks_[next_++]->End(SIGTERM, ChaosTask::Return::kAtOnce);
    advances_when_up_.reset();
  }

  const std::vector<ChaosTask*> tasks_;
  size_t next_ = 0;
  std::optional<int> advances_when_up_;  // of the last one that was told to end
};

}  // namespace

std::unique_ptr<OngoingFault> RestartInTurn(std::vector<ChaosTask*> tasks) {
  return std::make_unique<RollingRestart>(std::move(tasks));
}

}  // namespace lockstep::test
