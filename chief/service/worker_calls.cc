#include "chief/service/worker_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/service/newcomer.h"
#include "chief/service/request_limits.h"
#include "common/base/exit_code.h"
#include "common/base/limits.h"
#include "common/base/printable.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/config/cluster_spec.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kParkRegistration = absl::Seconds(2);
constexpr absl::Duration kParkHeartbeat = absl::Seconds(1);
constexpr int kLargestExitCode = 255;

// All workers of a job may come at once, and have left before.
int BurstOf(size_t workers) {
  return std::max(log::Throttle::kBurst, 2 * static_cast<int>(workers));
}

// Answers a call that has no effect. Its sender no longer waits.
absl::Status Late() {
  return absl::UnavailableError("the call has come late: a call that was sent after it came first");
}

}  // namespace

WorkerCalls::WorkerCalls(uint64_t run, ToldCluster cluster, Membership* membership,
                         EvaluationQueue* evaluations, const Clock* clock, Hooks hooks)
    : membership_(membership),
      evaluations_(evaluations),
      clock_(clock),
      hooks_(std::move(hooks)),
      changes_(BurstOf(membership->members().size())),
      contacts_(std::move(cluster), membership, evaluations),
      order_(run) {}

std::string WorkerCalls::NameOf(WorkerIndex worker) const {
  return absl::StrCat("worker ", worker.value(), " (",
                      membership_->members()[worker.value()].address, ")");
}

void WorkerCalls::Register(const RegisterTaskRequest& request, Answer<RegisterTaskReply> answer) {
  if (absl::Status refused =
          CheckNewcomer(request, contacts_.known_clusters(), hooks_.share_of != nullptr);
      !refused.ok()) {
    LogRefusal(absl::StrCat("refused a registration from host ",
                            Printable(request.host(), limits::kMaxHostBytes), ", pid ",
                            request.pid(), ": ", refused.message()));
    return answer(std::move(refused));
  }
  if (order_.IsLate(request)) return answer(Late());
  if (contacts_.outcome().has_value()) {
    contacts_.RecordEnded(ProcessOf(request));
    return answer(contacts_.TooLate());
  }
  NoteReceived(ProcessOf(request), request.last_reply());
  auto admitted = TryAdmit(request);
  if (admitted.has_value()) return answer(*std::move(admitted));
  if (registrations_.size() >=
      membership_->members().size() + limits::kMaxContendingRegistrations) {
    return answer(absl::ResourceExhaustedError("too many registrations wait. Remedy: try again"));
  }
  registrations_.Add({ParkedPartOf(request), clock_->Monotonic(), std::move(answer)});
}

void WorkerCalls::LogRefusal(absl::string_view message) {
  if (const auto line = refusals_.Admit(message, clock_->Monotonic())) log::Warning(*line);
}

void WorkerCalls::LogChange(void (*write)(absl::string_view), WorkerIndex worker,
                            absl::string_view what) {
  const std::string message = absl::StrCat(NameOf(worker), what);
  if (const auto line = changes_.Admit(message, clock_->Monotonic())) write(*line);
}

// Nothing while there is something to wait for.
ParkedRegistrations::Outcome WorkerCalls::TryAdmit(const RegisterTaskRequest& request,
                                                   std::optional<absl::Duration> came) {
  const LiveMember member = ProcessOf(request);
  TakeAddress(request, hooks_.share_of != nullptr, membership_);
  const uint64_t changes = membership_->changes();
  const absl::StatusOr<Admission> admission = membership_->Register(
      member.worker, member.incarnation, request.host(), request.pid(), clock_->Monotonic(), came);
  if (!admission.ok()) {
    LogRefusal(absl::StrCat("refused a second worker ", request.worker(), " from host ",
                            request.host(), ", pid ", request.pid()));
    return admission.status();
  }
  if (membership_->changes() != changes) {
    LogChange(log::Info, member.worker,
              absl::StrCat(" has registered: host ", request.host(), ", pid ", request.pid()));
    hooks_.members_changed();
  }
  if (*admission != Admission::kAdmitted || !job_.has_value() || !hooks_.admitted(member)) {
    return std::nullopt;
  }
  RegisterTaskReply reply = *job_;
  const GlobalStep start_step = start_step_();
  reply.set_start_step(start_step.value());
  if (hooks_.share_of != nullptr) {
    *reply.mutable_share() = hooks_.share_of(start_step, member.worker);
  }
  FindPlaces();
  contacts_.AddTo(&reply);
  *reply.mutable_id() = order_.NumberReply(member, clock_->Monotonic());
  membership_->NoteStart(member, start_step);
  return reply;
}

RegisterTaskReply WorkerCalls::Waiting(const RegisterTaskRequest& request) {
  RegisterTaskReply reply;
  const MemberRecord& holder = membership_->members()[request.worker()];
  if (holder.incarnation.value() != request.incarnation()) {
    reply.set_waiting_for(absl::StrCat("the lease of the worker ", request.worker(),
                                       " before this one to end: ", DescribeProcess(holder)));
  } else {
    reply.set_waiting_for(hooks_.waiting_for());
    *reply.mutable_id() = order_.NumberReply(ProcessOf(request), clock_->Monotonic());
  }
  return reply;
}

void WorkerCalls::AdmitParked() {
  if (!job_.has_value()) return;
  registrations_.Retry([this](const ParkedRegistration& call) {
    // Its process may have died since the call came.
    return hooks_.admitted(ProcessOf(call.request)) ? TryAdmit(call.request, call.came)
                                                    : std::nullopt;
  });
}

// Those who waited for a lease to end ask again.
void WorkerCalls::AdmitSuccessors() {
  registrations_.Retry([this](const ParkedRegistration& call) { return TryAdmit(call.request); });
}

void WorkerCalls::Heartbeat(const HeartbeatRequest& request, Answer<HeartbeatReply> answer) {
  const WorkerIndex worker(request.worker());
  if (absl::Status refused = CheckLimits(request); !refused.ok()) return answer(std::move(refused));
  if (job_.has_value() && request.job_id() != job_->job_id()) {
    return answer(WithExitCode(
        absl::AbortedError(absl::StrCat("worker ", request.worker(),
                                        " belongs to another job. Remedy: start it anew")),
        ExitCode::kPeersLost));
  }
  const LiveMember process = ProcessOf(request);
  if (order_.IsLate(request)) return answer(Late());
  NoteReceived(process, request.last_reply());
  const bool has_index = worker.value() < membership_->members().size();
  if (has_index && order_.ReceiveHeartbeat(process)) {
    // A process that sends heartbeats waits for no registration.
    registrations_.Retry([&](const ParkedRegistration& call) -> ParkedRegistrations::Outcome {
      if (ProcessOf(call.request) == process) return Late();
      return std::nullopt;
    });
  }
  if (HasRegisteredLate(request)) return answer(Dismiss(process));
  absl::Status fenced = membership_->Heartbeat(
      worker, process.incarnation,
      {.local_step = GlobalStep(request.local_step()),
       .waiting_for = Printable(request.waiting_for(), limits::kMaxWaitingForBytes),
       .examples = request.examples(),
       .accepted = request.accepted(),
       .stale = request.stale(),
       .out_of_data = request.out_of_data(),
       .ready = request.ready(),
       .departing = request.departing(),
       .failed_view = {request.failed_term(), request.failed_epoch(), request.failed_view()}},
      clock_->Monotonic());
  if (!fenced.ok() && members_known_) return answer(std::move(fenced));
  // A member of the job that this chief takes over keeps its lease.
  if (!job_.has_value()) return answer(absl::UnavailableError("the job has not begun"));
  const bool learns_of_end = contacts_.OnHeartbeat(
      process, request.has_last_reply() ? std::optional(order_.NumberOf(request.last_reply()))
                                        : std::nullopt);
  if (absl::Status wrong = TakeResults(request); !wrong.ok()) return answer(std::move(wrong));

  // One call of a worker is parked at a time.
  AnswerHeartbeat(worker);
  if (request.leaving()) {
    LogChange(log::Warning, worker, " has left: it was told to stop");
    answer(HeartbeatReply());
    return EndLease(process);
  }
  heartbeats_.insert_or_assign(
      worker, ParkedHeartbeat{clock_->Monotonic() + kParkHeartbeat, std::move(answer)});
  if (request.results_size() > 0) {
    AssignLeases();  // of an evaluation that begins, perhaps
  } else if (evaluations_ != nullptr && !contacts_.outcome().has_value()) {
    // What the others do does not change: a heartbeat costs the same however many they are.
    evaluations_->AssignTo(worker, clock_->Monotonic());
  }
  // A call after the end is the worker's last one, or a repeated one whose answer was lost. Neither
  // is parked.
  const bool at_once = request.results_size() > 0 || contacts_.outcome().has_value();
  if (at_once || contacts_.HasNews(worker)) AnswerHeartbeat(worker);
  if (learns_of_end && hooks_.end_known != nullptr) hooks_.end_known();
}

void WorkerCalls::EndLease(const LiveMember& process) {
  const bool has_held =
      membership_->Leave(process.worker, process.incarnation, clock_->Monotonic()).ok();
  if (!has_held) return;
  hooks_.members_changed();
  AdmitSuccessors();
  AssignLeases();
}

absl::Status WorkerCalls::TakeResults(const HeartbeatRequest& request) {
  if (evaluations_ == nullptr || request.results_size() == 0) return absl::OkStatus();
  for (const EvaluationResult& result : request.results()) {
    LOCKSTEP_RETURN_IF_ERROR(
        evaluations_->Report(WorkerIndex(request.worker()), {.lease = result.lease(),
                                                             .examples = result.examples(),
                                                             .correct = result.correct(),
                                                             .loss_sum = result.loss_sum()}));
  }
  hooks_.result_arrived();
  return absl::OkStatus();
}

void WorkerCalls::AssignLeases() {
  if (evaluations_ != nullptr && !contacts_.outcome().has_value()) {
    std::vector<WorkerIndex> workers;
    for (const LiveMember& member : membership_->Live()) {
      if (contacts_.IsInContact(member.worker)) workers.push_back(member.worker);
    }
    evaluations_->Assign(workers, clock_->Monotonic());
  }
  TellNews();
}

void WorkerCalls::TellNews() {
  AnswerHeartbeats(
      [this](WorkerIndex worker, const ParkedHeartbeat&) { return contacts_.HasNews(worker); });
}

// An answer may bring the next call: what is answered is taken out first.
void WorkerCalls::AnswerHeartbeat(WorkerIndex worker) {
  auto parked = heartbeats_.extract(worker);
  if (parked.empty()) return;
  const LiveMember process = {worker, contacts_.IncarnationOf(worker)};
  parked.mapped().answer(
      contacts_.MakeReply(worker, order_.NumberReply(process, clock_->Monotonic())));
}

void WorkerCalls::AnswerHeartbeats(
    const std::function<bool(WorkerIndex worker, const ParkedHeartbeat&)>& wanted) {
  std::vector<WorkerIndex> answered;
  for (const auto& [worker, call] : heartbeats_) {
    if (wanted(worker, call)) answered.push_back(worker);
  }
  for (const WorkerIndex worker : answered) AnswerHeartbeat(worker);
}

void WorkerCalls::ReportError(const ReportErrorRequest& request, Answer<ReportErrorReply> answer) {
  // Of a member of the job that this chief takes over.
  if (!job_.has_value()) return answer(absl::UnavailableError("the job has not begun"));
  answer(ReportErrorReply());
  const WorkerIndex worker(request.worker());
  if (request.job_id() != job_->job_id() || worker.value() >= membership_->members().size()) {
    return;
  }
  const MemberRecord& member = membership_->members()[worker.value()];
  if (member.state != MemberState::kLive || member.incarnation.value() != request.incarnation()) {
    return;
  }
  // It ends by itself.
  contacts_.RecordEnded({worker, member.incarnation});
  const bool sound = request.exit_code() > 0 && request.exit_code() <= kLargestExitCode;
  hooks_.worker_failed(
      WithExitCode(absl::InternalError(absl::StrCat(
                       NameOf(worker), ": ", Printable(request.message(), limits::kMaxErrorBytes))),
                   sound ? static_cast<ExitCode>(request.exit_code()) : ExitCode::kBug));
}

void WorkerCalls::Begin(RegisterTaskReply job, std::function<GlobalStep()> start_step) {
  KnowMembers();
  job_ = std::move(job);
  start_step_ = std::move(start_step);
  AdmitParked();
}

void WorkerCalls::End(absl::Status outcome) {
  contacts_.SetOutcome(std::move(outcome));
  AnswerHeartbeats([](WorkerIndex, const ParkedHeartbeat&) { return true; });
  // A worker that is told as it registers does not call again.
  registrations_.Retry([this](const ParkedRegistration& call) {
    contacts_.RecordEnded(ProcessOf(call.request));
    return contacts_.TooLate();
  });
}

void WorkerCalls::Close(const absl::Status& why) {
  for (auto& [worker, call] : std::exchange(heartbeats_, {})) call.answer(why);
  registrations_.Retry([&](const ParkedRegistration&) { return why; });
}

void WorkerCalls::Tick() {
  const absl::Duration now = clock_->Monotonic();
  const std::vector<WorkerIndex> lost = membership_->Expire(now);
  for (WorkerIndex worker : lost) {
    // It has ended, as it was told, while others are still being told.
    if (contacts_.IsToldEnd(worker)) continue;
    const absl::Duration silence = now - membership_->members()[worker.value()].last_heard;
    std::string text = absl::StrCat(NameOf(worker), " is lost: silent for ", DurationText(silence));
    hooks_.warn ? hooks_.warn(std::move(text)) : log::Warning(text);
  }
  if (!lost.empty()) {
    hooks_.members_changed();
    AdmitSuccessors();
  }
  AssignLeases();
  if (FindPlaces()) TellNews();
  AnswerHeartbeats([now](WorkerIndex, const ParkedHeartbeat& call) { return now >= call.until; });
  registrations_.Retry([&](const ParkedRegistration& call) -> ParkedRegistrations::Outcome {
    if (now < call.came + kParkRegistration) return std::nullopt;
    return Waiting(call.request);
  });
}

}  // namespace lockstep::chief
