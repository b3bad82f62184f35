#include "chief/copies/copy_attacher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/quantity.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kSearchPeriod = absl::Milliseconds(500);
constexpr absl::Duration kFirstPause = absl::Seconds(2);
constexpr absl::Duration kLongestPause = absl::Minutes(1);

}  // namespace

CopyAttacher::CopyAttacher(absl::Duration patience, PairRoles* roles, Executor* executor,
                           const Clock* clock, std::function<void()> on_pair)
    : patience_(patience),
      roles_(roles),
      executor_(executor),
      clock_(clock),
      on_pair_(std::move(on_pair)),
      pause_(kFirstPause) {}

void CopyAttacher::Tick() {
  if (!roles_->IsAlone() || !variables_.has_value()) return attempt_.reset();
  if (attempt_.has_value()) {
    attempt_->Tick();
    if (attempt_->outcome().has_value() && !roles_->is_changing()) OnOutcome();
    return;
  }
  if (clock_->Monotonic() >= next_look_ && !roles_->is_changing()) FindPlaceForCopy();
}

void CopyAttacher::FindPlaceForCopy() {
  if (std::exchange(is_looking_, true)) return;
  next_look_ = clock_->Monotonic() + kSearchPeriod;
  roles_->other_place()->GetView([this, epoch = roles_->epoch(), serving = roles_->serving()](
                                     const absl::StatusOr<SetViewReply>& other) {
    is_looking_ = false;
    const bool is_over = epoch != roles_->epoch() || serving != roles_->serving();
    if (!other.ok() || is_over || !roles_->IsAlone() || roles_->is_changing()) return;
    if (variables_.has_value() && !attempt_.has_value()) Start();
  });
}

void CopyAttacher::Start() {
  const std::string& other = roles_->other_place()->name();
  log::Info(
      roles_->serving() == kHome
          ? absl::StrCat(other, " is back: it becomes the copy of the shard of ", roles_->name())
          : absl::StrCat(other, " is back: it becomes the copy of its shard, which ",
                         roles_->serving_place()->name(), " serves"));
  attempt_.emplace(*variables_, patience_, roles_, executor_, clock_);
  attempt_->Start();
}

void CopyAttacher::OnOutcome() {
  const absl::Status outcome = *attempt_->outcome();
  const absl::Duration elapsed = attempt_->elapsed();
  attempt_.reset();
  const std::string copy = absl::StrCat("the copy of the shard of ", roles_->name(), " at ",
                                        roles_->other_place()->name());
  if (outcome.ok()) {
    log::Info(absl::StrCat(copy, " is complete after ", DurationText(elapsed)));
    pause_ = kFirstPause;
    roles_->BecomePair();
    return on_pair_();
  }
  next_look_ = clock_->Monotonic() + pause_;
  log::Warning(absl::StrCat(copy, " could not be made: ", outcome.message(),
                            ". The next attempt is in ", DurationText(pause_)));
  pause_ = std::min(2 * pause_, kLongestPause);
}

}  // namespace lockstep::chief
