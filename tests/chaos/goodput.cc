#include "tests/chaos/goodput.h"

#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep::test {
namespace {

// Whom to kill, and when in a period. Pure.
class KillPlan {
 public:
  KillPlan(uint64_t seed, size_t num_tasks, absl::Duration period)
      : random_(seed), num_tasks_(num_tasks), period_(period) {}

  size_t NextVictim() {
    if (left_.empty()) {
      left_.resize(num_tasks_);
      std::iota(left_.begin(), left_.end(), size_t{0});
    }
    std::swap(left_[random_() % left_.size()], left_.back());
    const size_t victim = left_.back();
    left_.pop_back();
    return victim;
  }
  absl::Duration NextMoment() {
    return absl::Milliseconds(random_() % std::max<int64_t>(1, absl::ToInt64Milliseconds(period_)));
  }

 private:
  std::mt19937_64 random_;
  const size_t num_tasks_;
  const absl::Duration period_;
  std::vector<size_t> left_;
};

}  // namespace

std::string Goodput::Line() const {
  return absl::StrFormat("%d steps in %.0f s without kills, %d with %d kills: goodput %.1f %%\n",
                         calm_steps, absl::ToDoubleSeconds(time), steps, kills, 100 * share());
}

std::string Goodput::Json() const {
  const nlohmann::json all = {{"seconds", absl::ToDoubleSeconds(time)},
                              {"calm_steps", calm_steps},
                              {"steps", steps},
                              {"kills", kills},
                              {"goodput", share()}};
  return all.dump(2) + "\n";
}

bool MeasureGoodput(ChaosJob* job, ChaosRun* run, const GoodputOptions& options,
                    const std::function<void(const std::string&)>& say, Goodput* goodput) {
  goodput->time = options.time;
  int64_t begin = job->steps();
  if (!run->TendFor(options.time)) return false;
  goodput->calm_steps = job->steps() - begin;
  begin = job->steps();
  KillPlan plan(options.seed, job->tasks().size(), options.period);
  for (absl::Duration left = options.time; left > absl::ZeroDuration(); left -= options.period) {
    const absl::Duration period = std::min(left, options.period);
    const absl::Duration moment = std::min(plan.NextMoment(), period);
    if (!run->TendFor(moment)) return false;
    ChaosTask& victim = *job->tasks()[plan.NextVictim()];
    say(absl::StrCat("kill -9 ", victim.name(), " after ", job->steps() - begin, " steps"));
    victim.End(SIGKILL);
    ++goodput->kills;
    if (!run->TendFor(period - moment)) return false;
  }
  goodput->steps = job->steps() - begin;
  return true;
}

}  // namespace lockstep::test
