#include "chief/job/ending_phase.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/job/log_lines.h"
#include "chief/job/milestone_runner.h"
#include "chief/job/status_reporter.h"
#include "chief/plan/losses.h"
#include "common/base/exit_code.h"
#include "common/base/quantity.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

// For the workers to hear the end, and again for the ps.
constexpr absl::Duration kEndGrace = absl::Seconds(2);
// For the step shard to hear that nobody commands. Otherwise the lease ends, and says the same.
constexpr absl::Duration kReleaseGrace = absl::Seconds(1);

}  // namespace

EndingPhase::EndingPhase(JobState* job, JobEnd end) : job_(job), end_(std::move(end)) {}

bool EndingPhase::MaySave() const {
  return end_.save_first && job_->views.has_value() &&
         !job_->inputs.plan.job.checkpoint().folder().empty() &&
         job_->inputs.options.drain > absl::ZeroDuration();
}

void EndingPhase::Start() {
  if (job_->views.has_value()) job_->views->Stop();
  if (!MaySave()) {
    const bool has_folder = !job_->inputs.plan.job.checkpoint().folder().empty();
    if (end_.save_first && job_->has_begun && !has_folder) {
      log::Warning("nothing is saved: the job has no checkpoint folder");
    }
    end_.save_first = false;
    return Finish(std::move(end_.outcome), end_.told);
  }
  log::Info(absl::StrCat("saving the last committed step: ", end_.outcome.message()));
  deadline_ = job_->now() + job_->inputs.options.drain;
  job_->milestones->StopSaving();
  DrainIfIdle();
}

void EndingPhase::EndAgain(JobEnd end) {
  if (stage_ == Stage::kSaving && end.save_first) {
    const bool only_leaves = end_.told == Told::kNobody;
    if (only_leaves && end.told == Told::kEverybody) end_ = std::move(end);
    return;
  }
  // There is nothing to save; Finish takes it from there. Where another chief commands, the next
  // start ends for that.
  if (HasGoneBack() && !absl::IsAborted(end.outcome)) stage_ = Stage::kSaving;
  Finish(std::move(end.outcome), end.told);
}

bool EndingPhase::HasGoneBack() const {
  return stage_ == Stage::kOver && job_->inputs.plan.goes_back_after(end_.outcome);
}

void EndingPhase::OnEvent(JobEvent event) {
  const bool has_save_ended = event == JobEvent::kMilestoneEnded || event == JobEvent::kSaveFailed;
  if (stage_ == Stage::kSaving && has_save_ended) DrainIfIdle();
  if (event == JobEvent::kEndKnown && stage_ == Stage::kTellingWorkers) WatchTelling();
}

void EndingPhase::DrainIfIdle() {
  if (job_->milestones->is_writing() || drain_.has_value()) return;
  const GlobalStep saved = job_->milestones->saved();
  if (job_->record.global_step <= saved) return Finish(std::move(end_.outcome), end_.told);
  drain_.emplace(DrainOptions{.view = job_->initialized.view,
                              .shard_names = job_->inputs.shard_names,
                              .saved = saved,
                              .turns = TurnsOfShards(job_->inputs.plan.placement),
                              .saves_kept_alone = job_->inputs.plan.is_replicated(),
                              .steps = MakeStepOptions(*job_),
                              .checkpoints = MakeCheckpointerOptions(job_)},
                 job_->inputs.shards, job_->inputs.executor, job_->inputs.clock,
                 [this](const absl::StatusOr<Drain::Saved>& saved) { OnDrained(saved); });
  drain_->Start();
}

// A successor of a lost worker would not help: no shard takes new members while the job ends.
bool EndingPhase::LacksWorkers() const {
  return drain_.has_value() && drain_->needs_next_step() && job_->inputs.plan.is_replicated() &&
         job_->membership.Live().size() < job_->record.required;
}

void EndingPhase::OnDrained(const absl::StatusOr<Drain::Saved>& saved) {
  if (absl::IsAborted(saved.status())) return Finish(saved.status(), Told::kNobody);
  if (!saved.ok()) return FinishUnsaved(saved.status());
  if (!saved->folder.empty()) job_->milestones->RecordSave(saved->step, saved->folder);
  Finish(std::move(end_.outcome), end_.told);
}

void EndingPhase::FinishUnsaved(const absl::Status& why) {
  job_->milestones->RecordSave(job_->record.global_step, why);
  const bool can_go_on = ExitCodeFor(end_.outcome) == ExitCode::kPeersLost;
  const bool leaves_ps = can_go_on && end_.told == Told::kEverybody;
  Finish(std::move(end_.outcome), leaves_ps ? Told::kWorkers : end_.told);
}

void EndingPhase::Finish(absl::Status outcome, Told told) {
  if (stage_ != Stage::kSaving) return;
  const bool goes_back = told == Told::kNobody && job_->inputs.plan.goes_back_after(outcome);
  if (const std::string line = EndLine(outcome, told, goes_back); !line.empty()) log::Info(line);
  // A start that can be tried again leaves the ps to the next chief.
  const bool try_again =
      ExitCodeFor(outcome) == ExitCode::kPeersLost && !job_->has_begun && !end_.save_first;
  stage_ = Stage::kTellingWorkers;
  end_.outcome = std::move(outcome);
  job_->milestones->Stop();
  if (drain_.has_value()) drain_->Stop();
  told_ = told;
  if (told == Told::kNobody) return EndLease();
  job_->calls->End(end_.outcome);
  releases_shards_ = told == Told::kEverybody && !try_again && CommandOfShards() != nullptr;
  deadline_ = job_->now() + kEndGrace;
  WatchTelling();
}

void EndingPhase::Tick() {
  if (stage_ != Stage::kSaving) return WatchTelling();
  if (drain_.has_value()) drain_->Tick();
  if (stage_ != Stage::kSaving) return;
  JobFacts facts;
  Describe(&facts);
  if (LacksWorkers()) {
    return FinishUnsaved(absl::FailedPreconditionError(
        absl::StrCat(facts.drain.problem, "; too few workers live to make the next version")));
  }
  if (job_->now() < deadline_) return;
  FinishUnsaved(absl::DeadlineExceededError(
      absl::StrCat("not written within ", DurationText(job_->inputs.options.drain),
                   " (--drain): ", job_->reporter->SavingWaitsFor(facts.drain))));
}

void EndingPhase::WatchTelling() {
  const bool is_late = job_->now() >= deadline_;
  if (stage_ == Stage::kEndingLease && is_late) return Conclude();
  if (stage_ == Stage::kTellingWorkers && (is_late || WorkersKnow())) return ReleaseShards();
  if (stage_ != Stage::kReleasingShards) return;
  release_->Tick();
  if (stage_ != Stage::kReleasingShards) return;
  if (is_late && MayTellOthersAnyway()) return TellOthersAnyway();
  std::string untold = release_->DescribeWaiting();
  const std::string places = UnfinishedPlaces();
  absl::StrAppend(&untold, untold.empty() || places.empty() ? "" : "; ", places);
  if (!untold.empty() && !is_late) return;
  if (!untold.empty()) log::Warning(absl::StrCat("not told that the job is over: ", untold));
  Conclude();
}

// Who missed the answer of a chief that ends would call for as long as its patience lasts. One that
// goes back to a checkpoint answers those, too.
bool EndingPhase::WorkersKnow() const {
  return job_->inputs.plan.goes_back_after(end_.outcome) ? job_->calls->EverybodyIsTold()
                                                         : job_->calls->EverybodyKnows();
}

std::string EndingPhase::UnfinishedPlaces() const {
  const auto& unfinished = job_->inputs.options.unfinished_places;
  return unfinished == nullptr ? "" : unfinished();
}

// That of this job's view, or of the job before where this one has set none yet. The step shard may
// have accepted a view whose answer is yet to come: it refuses the command before.
const Command* EndingPhase::CommandOfShards() const {
  const Command& own = job_->initialized.view.command();
  if (own.job() != 0) return &own;
  if (job_->lease == nullptr) return nullptr;
  const Command& held = job_->lease->command();
  return job_->announced.term() > held.term() ? &job_->announced : &held;
}

void EndingPhase::ReleaseShards() {
  stage_ = Stage::kReleasingShards;
  deadline_ = job_->now() + kEndGrace;
  if (!releases_shards_) return EndLease();
  FinishRequest request;
  *request.mutable_command() = drain_.has_value() ? drain_->command() : *CommandOfShards();
  request.set_exit_code(static_cast<int>(ExitCodeFor(end_.outcome)));
  request.set_reason(std::string(end_.outcome.message()));
  // Where chiefs stand by the step shard is told first: while it does not know of the end, one of
  // them takes command, and then needs the other ps.
  tells_others_ = job_->inputs.plan.cluster.chiefs().size() == 1;
  // A ps that is being started again is told, too: it would wait for a chief for nothing.
  release_.emplace(
      job_->inputs.shard_names, job_->inputs.clock,
      [this, request](size_t shard, StatusCallback answered) {
        if (shard != kStepShard && !tells_others_) {
          return answered(absl::UnavailableError(
              absl::StrCat(job_->inputs.shard_names[shard], " is told after ",
                           job_->inputs.shard_names[kStepShard])));
        }
        job_->inputs.shards[shard]->Call(
            kFinish, request,
            On<FinishReply>(job_->inputs.executor,
                            [this, shard, answered = std::move(answered)](
                                const absl::StatusOr<FinishReply>& reply) mutable {
                              OnShardTold(shard, reply.status(), std::move(answered));
                            }));
      },
      [this](const absl::Status& status) {
        if (!status.ok()) return ConcludeFenced(status);
        if (UnfinishedPlaces().empty()) Conclude();
      });
  release_->Start();
}

// A job that is done has its last checkpoint, if it makes any. One that was stopped may go on, and
// then needs all shards.
bool EndingPhase::MayTellOthersAnyway() const {
  return !tells_others_ && end_.outcome.ok() && job_->inputs.shards.size() > 1;
}

// They would wait for a chief for ever.
void EndingPhase::TellOthersAnyway() {
  tells_others_ = true;
  deadline_ = job_->now() + kEndGrace;
  release_->RepeatNow();
}

void EndingPhase::OnShardTold(size_t shard, const absl::Status& status, StatusCallback answered) {
  const bool is_fenced = shard == kStepShard && absl::IsAborted(status);
  if (is_fenced || IsTransient(status)) return answered(status);
  tells_others_ |= shard == kStepShard;
  if (!status.ok()) log::Warning(status.message());
  answered(absl::OkStatus());
}

// Standby chiefs hear of the end from the step shard. One that was told to finish tells them
// itself.
void EndingPhase::EndLease() {
  LeaseKeeper* const lease = job_->lease.get();
  if (lease == nullptr || job_->inputs.plan.goes_back_after(end_.outcome)) return Conclude();
  if (absl::IsAborted(end_.outcome)) {
    lease->Stop();
    return Conclude();
  }
  stage_ = Stage::kEndingLease;
  deadline_ = job_->now() + kReleaseGrace;
  StatusCallback heard = [this](const absl::Status&) {
    if (stage_ == Stage::kEndingLease) Conclude();
  };
  if (told_ == Told::kNobody) return lease->Release(std::move(heard));
  lease->EndJob(end_.outcome, std::move(heard));
}

void EndingPhase::ConcludeFenced(const absl::Status& refusal) {
  end_.outcome = refusal;
  if (job_->lease != nullptr) job_->lease->Stop();
  Conclude();
}

void EndingPhase::Conclude() {
  stage_ = Stage::kOver;
  job_->inputs.on_end(end_.outcome);
}

void EndingPhase::Describe(JobFacts* facts) const {
  facts->stage = stage_ == Stage::kSaving ? JobStage::kSaving
                 : HasGoneBack()          ? JobStage::kGoingBack
                                          : JobStage::kOver;
  if (drain_.has_value()) facts->drain = drain_->Describe();
}

}  // namespace lockstep::chief
