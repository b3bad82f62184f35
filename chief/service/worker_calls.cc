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

}  // namespace

WorkerCalls::WorkerCalls(uint64_t run, ToldCluster cluster, Membership* membership,
                         EvaluationQueue* evaluations, const Clock* clock, Hooks hooks)
    : cluster_(std::move(cluster)),
      membership_(membership),
      evaluations_(evaluations),
      clock_(clock),
      hooks_(std::move(hooks)),
      changes_(BurstOf(membership->members().size())),
      order_(run) {}

std::string WorkerCalls::NameOf(WorkerIndex worker) const {
  return absl::StrCat("worker ", worker.value(), " (",
                      membership_->members()[worker.value()].address, ")");
}

void WorkerCalls::Register(const RegisterTaskRequest& request, Answer<RegisterTaskReply> answer) {
  if (absl::Status refused = CheckNewcomer(request, cluster_.known(), hooks_.share_of != nullptr);
      !refused.ok()) {
    LogRefusal(absl::StrCat("refused a registration from host ",
                            Printable(request.host(), limits::kMaxHostBytes), ", pid ",
                            request.pid(), ": ", refused.message()));
    return answer(std::move(refused));
  }
  if (order_.IsLate(request)) return answer(Late());
  if (outcome_.has_value()) {
    NoteTold(request);
    return answer(TooLate());
  }
  NoteReceived(ProcessOf(request), request.last_reply());
  auto admitted = TryAdmit(request);
  if (admitted.has_value()) return answer(*std::move(admitted));
  if (registrations_.size() >=
      membership_->members().size() + limits::kMaxContendingRegistrations) {
    return answer(absl::ResourceExhaustedError("too many registrations wait. Remedy: try again"));
  }
  registrations_.push_back(
      {ParkedPartOf(request), clock_->Monotonic() + kParkRegistration, std::move(answer)});
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
std::optional<absl::StatusOr<RegisterTaskReply>> WorkerCalls::TryAdmit(
    const RegisterTaskRequest& request, std::optional<absl::Duration> came) {
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
  places_.AddTo(&reply);
  *reply.mutable_cluster() = cluster_.newest();
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
  // Admitting may change members, and so come back here: each call is taken out first.
  std::list<ParkedRegistration> parked = std::exchange(registrations_, {});
  for (ParkedRegistration& call : parked) {
    if (hooks_.admitted(ProcessOf(call.request))) {
      // Its process may have died since the call came.
      const absl::Duration came = call.until - kParkRegistration;
      if (auto admitted = TryAdmit(call.request, came); admitted.has_value()) {
        call.answer(*std::move(admitted));
        continue;
      }
    }
    registrations_.push_back(std::move(call));
  }
}

// Those who waited for a lease to end ask again.
void WorkerCalls::AdmitSuccessors() {
  std::list<ParkedRegistration> parked = std::exchange(registrations_, {});
  for (ParkedRegistration& call : parked) {
    if (auto admitted = TryAdmit(call.request); admitted.has_value()) {
      call.answer(*std::move(admitted));
    } else {
      registrations_.push_back(std::move(call));
    }
  }
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
  if (has_index && order_.ReceiveHeartbeat(process)) AnswerLateRegistrations(process);
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
  Contact& contact = contacts_[worker];
  if (contact.incarnation != process.incarnation) contact = {.incarnation = process.incarnation};
  // One that names no replies cannot say that it has missed any.
  const bool has_got =
      !request.has_last_reply() || order_.NumberOf(request.last_reply()) >= contact.cluster_reply;
  contact.has_cluster |= contact.told_cluster != 0 && has_got;
  const bool learns_of_end = LearnsOfEnd(request, &contact);
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
  } else if (evaluations_ != nullptr && !outcome_.has_value()) {
    // What the others do does not change: a heartbeat costs the same however many they are.
    evaluations_->AssignTo(worker, clock_->Monotonic());
  }
  // A call after the end is the worker's last one, or a repeated one whose answer was lost. Neither
  // is parked.
  const bool at_once = request.results_size() > 0 || outcome_.has_value();
  if (at_once || HasNews(worker)) AnswerHeartbeat(worker);
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
  if (evaluations_ != nullptr && !outcome_.has_value()) {
    std::vector<WorkerIndex> workers;
    for (const LiveMember& member : membership_->Live()) {
      if (IsInContact(member.worker)) workers.push_back(member.worker);
    }
    evaluations_->Assign(workers, clock_->Monotonic());
  }
  TellNews();
}

void WorkerCalls::TellNews() {
  AnswerHeartbeats([this](WorkerIndex worker, const ParkedHeartbeat&) { return HasNews(worker); });
}

bool WorkerCalls::IsInContact(WorkerIndex worker) const {
  const auto found = contacts_.find(worker);
  const MemberRecord& member = membership_->members()[worker.value()];
  return found != contacts_.end() && member.state == MemberState::kLive &&
         found->second.incarnation == member.incarnation;
}

bool WorkerCalls::HasNews(WorkerIndex worker) const {
  const Contact& contact = contacts_.at(worker);
  if (outcome_.has_value()) return !contact.told_end;
  if (IsInGroup({worker, contact.incarnation}) && group_->view() != contact.told_group) return true;
  const std::optional<Lease> lease =
      evaluations_ == nullptr ? std::nullopt : evaluations_->LeaseOf(worker);
  const bool has_other_cluster =
      cluster_.has_changed() && contact.told_cluster != cluster_.number();
  return has_other_cluster || contact.told_places != places_.number() ||
         (lease.has_value() ? lease->id : 0) != contact.told_lease;
}

// A successor may come before the group has it: the last view stays while too few are there for
// another one, and a worker that is told a view without itself ends.
bool WorkerCalls::IsInGroup(const LiveMember& process) const {
  return group_.has_value() &&
         std::ranges::any_of(group_->members(), [&](const GroupMember& member) {
           return member.worker() == process.worker.value() &&
                  member.incarnation() == process.incarnation.value();
         });
}

HeartbeatReply WorkerCalls::MakeReply(WorkerIndex worker) {
  Contact& contact = contacts_.at(worker);
  HeartbeatReply reply;
  *reply.mutable_id() = order_.NumberReply({worker, contact.incarnation}, clock_->Monotonic());
  if (outcome_.has_value()) {
    if (!std::exchange(contact.told_end, true)) contact.end_reply = reply.id().number();
    if (outcome_->ok()) {
      reply.set_finish(true);
    } else {
      reply.set_fail(std::string(outcome_->message()));
      reply.set_fail_exit_code(static_cast<int>(ExitCodeFor(*outcome_)));
    }
    return reply;
  }
  // Also what this chief was started with: the chief before may have had another one.
  if (std::exchange(contact.told_cluster, cluster_.number()) != cluster_.number()) {
    contact.cluster_reply = reply.id().number();
    contact.has_cluster = false;
  }
  if (!contact.has_cluster) *reply.mutable_cluster() = cluster_.newest();
  if (IsInGroup({worker, contact.incarnation})) {
    contact.told_group = group_->view();
    *reply.mutable_group() = *group_;
  }
  contact.told_places = places_.number();
  places_.AddTo(&reply);
  contact.told_lease = 0;
  const std::optional<Lease> lease =
      evaluations_ == nullptr ? std::nullopt : evaluations_->LeaseOf(worker);
  if (lease.has_value()) {
    contact.told_lease = lease->id;
    EvaluationLease* told = reply.add_leases();
    told->set_id(lease->id);
    told->set_version(lease->version.value());
    told->set_begin(lease->begin);
    told->set_end(lease->end);
  }
  return reply;
}

// An answer may bring the next call: what is answered is taken out first.
void WorkerCalls::AnswerHeartbeat(WorkerIndex worker) {
  auto parked = heartbeats_.extract(worker);
  if (!parked.empty()) parked.mapped().answer(MakeReply(worker));
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
  contacts_[worker] = {.incarnation = member.incarnation, .told_end = true, .knows_end = true};
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

void WorkerCalls::Tick() {
  const absl::Duration now = clock_->Monotonic();
  const std::vector<WorkerIndex> lost = membership_->Expire(now);
  for (WorkerIndex worker : lost) {
    const auto contact = contacts_.find(worker);
    // It has ended, as it was told, while others are still being told.
    if (contact != contacts_.end() && contact->second.told_end) continue;
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
  std::list<ParkedRegistration> parked = std::exchange(registrations_, {});
  for (ParkedRegistration& call : parked) {
    if (now >= call.until) {
      call.answer(Waiting(call.request));
    } else {
      registrations_.push_back(std::move(call));
    }
  }
}

}  // namespace lockstep::chief
