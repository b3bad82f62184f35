#include "chief/recovery/take_command.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/grants_ahead.h"
#include "common/base/ids.h"
#include "common/base/limits.h"
#include "common/base/lost_variables.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"

namespace lockstep::chief {
namespace {

constexpr char kGoBack[] =
    "start the chief with --resume: every ps goes back to the newest checkpoint";

absl::Status Refused(const std::string& shard, absl::string_view why, absl::string_view remedy) {
  return absl::FailedPreconditionError(absl::StrCat(shard, " ", why, ". Remedy: ", remedy));
}

absl::Status CheckVersion(const std::string& shard, const SetViewReply& state) {
  // A shard that has not answered tells none.
  if (state.version().empty() || state.version() == kVersion) return absl::OkStatus();
  return Refused(
      shard,
      absl::StrCat("is of version ", Printable(state.version(), limits::kMaxVersionBytes),
                   ", the chief of version ", kVersion),
      "install the same version everywhere");
}

absl::Status CheckEnd(const RecoverySpec& spec, const std::vector<SetViewReply>& shards) {
  const int64_t step = shards[kStepShard].global_step();
  if (step <= spec.end.value()) return absl::OkStatus();
  return Refused(
      spec.shard_names[kStepShard],
      absl::StrCat("is at step ", step, ", and the job ends at step ", spec.end.value()),
      absl::StrCat("raise max_steps or data_epochs to ", step,
                   " steps or more; or end every ps, start them again, and give the chief "
                   "--restore or --fresh"));
}

void FindKept(const std::vector<SetViewReply>& shards, JobProgress* progress) {
  using Versions = std::vector<GlobalStep>;
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    Versions versions;
    for (const int64_t version : shards[shard].kept_versions()) versions.emplace_back(version);
    std::sort(versions.begin(), versions.end());
    Versions any;
    std::set_union(progress->kept.begin(), progress->kept.end(), versions.begin(), versions.end(),
                   std::back_inserter(any));
    progress->kept = std::move(any);
    Versions common;
    std::set_intersection(progress->kept_by_all.begin(), progress->kept_by_all.end(),
                          versions.begin(), versions.end(), std::back_inserter(common));
    progress->kept_by_all = shard == 0 ? std::move(versions) : std::move(common);
  }
}

}  // namespace

absl::Status CheckTogether(const RecoverySpec& spec, const std::vector<SetViewReply>& shards) {
  const int64_t step = shards[kStepShard].global_step();
  const uint64_t epoch = shards[kStepShard].epoch();
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    const SetViewReply& state = shards[shard];
    const std::string& name = spec.shard_names[shard];
    if (!state.has_variables()) {
      return Refused(name, "has lost its variables, others are in training", kGoBack);
    }
    if (state.epoch() != epoch) {
      return Refused(
          name, absl::StrCat("is in epoch ", state.epoch(), ", the job in epoch ", epoch), kGoBack);
    }
    // It may have closed the step at hand; one that waits for no gradients, all that was granted.
    const bool is_near = state.shard_step() >= step && state.shard_step() <= step + kGrantsAhead;
    if (spec.variables.asynchronous() || is_near) continue;
    return Refused(
        name, absl::StrCat("is at step ", state.shard_step(), ", the job at step ", step), kGoBack);
  }
  return absl::OkStatus();
}

bool HasTrained(const RecoverySpec& spec, const SetViewReply& view) {
  const int64_t start = spec.variables.start_step();
  return view.has_variables() && (view.shard_step() != start || view.global_step() > start);
}

absl::StatusOr<SetViewRequest> TakeCommand(const RecoverySpec& spec,
                                           const std::vector<SetViewReply>& seen) {
  uint64_t job = 0;
  uint64_t term = 0;
  uint64_t epoch = spec.epoch.value();
  for (size_t shard = 0; shard < seen.size(); ++shard) {
    const SetViewReply& state = seen[shard];
    const std::string& name = spec.shard_names[shard];
    LOCKSTEP_RETURN_IF_ERROR(CheckVersion(name, state));
    if (state.job() != 0 && job != 0 && state.job() != job) {
      return Refused(name, "belongs to another job than the ps before it",
                     "correct the addresses of the ps in the cluster spec, or end the ps of the "
                     "other job and start them again");
    }
    if (spec.mode == StartMode::kRestore && HasTrained(spec, state)) {
      return Refused(name,
                     absl::StrCat("is at step ", state.shard_step(),
                                  " of a chief that is gone, this one is to start from ",
                                  spec.variables.restore_from()),
                     absl::StrCat("leave out --restore, or give --resume, to go on at step ",
                                  state.shard_step(), "; or start every ps again"));
    }
    if (state.job() != 0) job = state.job();
    term = std::max<uint64_t>(term, state.term());
    epoch = std::max<uint64_t>(epoch, state.epoch());
  }
  SetViewRequest view;
  view.mutable_command()->set_job(job != 0 ? job : spec.job);
  view.mutable_command()->set_term(std::max(term + 1, spec.least_term));
  view.mutable_command()->set_chief(spec.chief.value());
  view.set_version(kVersion);
  view.set_epoch(epoch);
  view.set_elastic(spec.is_elastic);
  view.set_chief_index(spec.chief_index);
  view.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(spec.lease)));
  // A higher epoch is another state: nobody is a member of it yet.
  const SetViewReply& step_shard = seen[kStepShard];
  if (step_shard.has_variables() && step_shard.epoch() == epoch) {
    *view.mutable_members() = step_shard.members();
  }
  return view;
}

absl::Status CheckNoneLost(const RecoverySpec& spec, const std::vector<SetViewReply>& shards) {
  const auto lost = std::ranges::find(shards, false, &SetViewReply::has_variables);
  if (lost == shards.end()) return absl::OkStatus();
  return LostVariablesError(spec.shard_names[lost - shards.begin()]);
}

absl::StatusOr<JobProgress> FindProgress(const RecoverySpec& spec,
                                         const std::vector<SetViewReply>& shards) {
  JobProgress progress{.step = GlobalStep(spec.variables.start_step())};
  const bool has_trained =
      std::any_of(shards.begin(), shards.end(),
                  [&](const SetViewReply& state) { return HasTrained(spec, state); });
  if (!has_trained) return progress;
  progress.has_trained = true;
  if (absl::Status apart = CheckTogether(spec, shards); !apart.ok()) {
    const bool starts_again = spec.mode == StartMode::kResume || spec.mode == StartMode::kSucceed;
    if (!starts_again) return apart;
    // It was started again since it was asked: a job with checkpoints goes back by itself.
    LOCKSTEP_RETURN_IF_ERROR(CheckNoneLost(spec, shards));
    return WithExitCode(apart, ExitCode::kPeersLost);
  }
  if (absl::Status over = CheckEnd(spec, shards); !over.ok()) return over;
  FindKept(shards, &progress);
  progress.evaluations.assign(shards[kStepShard].evaluations().begin(),
                              shards[kStepShard].evaluations().end());
  progress.step = GlobalStep(shards[kStepShard].global_step());
  if (progress.step < spec.end) return progress;
  // The last step is granted once more, to come to the end in order.
  progress.step = GlobalStep(spec.end.value() - 1);
  progress.has_made_all_steps = !spec.variables.asynchronous();
  // One that is kept by some only is being released, unless the others serve as copies.
  const std::vector<GlobalStep>& unfinished =
      spec.has_copies() ? progress.kept : progress.kept_by_all;
  progress.is_finished =
      progress.has_made_all_steps && !std::ranges::binary_search(unfinished, spec.end);
  return progress;
}

}  // namespace lockstep::chief
