// What a worker says to the chief, and what it makes of the answers.
#include <utility>

#include "common/base/exit_code.h"
#include "common/base/version.h"
#include "common/client/chief_client.h"
#include "common/replicas_proto/convert.h"
#include "tests/sim/sim_worker.h"
#include "worker/service/convert.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kRegisterPause = absl::Milliseconds(100);

}  // namespace

bool SimWorker::MayRepeat(const absl::Status& error) {
  if (absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error) ||
      absl::IsResourceExhausted(error)) {
    return true;
  }
  // As worker_main does: given up by the chief after a silence, or no member of the epoch.
  if (absl::IsAborted(error) ||
      (absl::IsFailedPrecondition(error) && ExitCodeFor(error) == ExitCode::kPeersLost)) {
    Start();
  } else {
    End(error);
  }
  return false;
}

void SimWorker::Register() {
  RegisterTaskRequest request;
  request.set_worker(options_.index.value());
  request.set_incarnation(incarnation_);
  request.set_cluster(options_.cluster);
  request.set_version(kVersion);
  last_reply_->NameIn(&request);
  network_->Call<RegisterTaskReply>(
      LinkToChief(), kRegisterTask.deadline,
      [chief = chief_, request](Callback<RegisterTaskReply> answer) {
        chief->Register(request, std::move(answer));
      },
      Mine<RegisterTaskReply>([this](absl::StatusOr<RegisterTaskReply> reply) {
        if (reply.ok()) last_reply_->Set(reply->id());
        if (absl::IsFailedPrecondition(reply.status())) {
          End(reply.status());  // such as a job that is lost: another try hears the same
        } else if (!reply.ok()) {
          if (MayRepeat(reply.status())) Later(kRegisterPause, [this] { Register(); });
        } else if (reply->done()) {
          End(absl::OkStatus());
        } else if (!reply->ready()) {
          Register();
        } else {
          job_ = *std::move(reply);
          local_step_ = GlobalStep(job_.start_step());
          starts_.push_back(local_step_);
          share_.reset();
          if (job_.has_share()) share_ = FromProto(job_.share());
          MakeTraining();
          Beat();
          BeginStep(local_step_);
        }
      }));
}

Link SimWorker::LinkToChief() const { return {node(), chief_->commander()}; }

HeartbeatRequest SimWorker::MakeHeartbeat() const {
  HeartbeatRequest request;
  request.set_job_id(job_.job_id());
  request.set_worker(options_.index.value());
  request.set_incarnation(incarnation_);
  request.set_local_step(local_step_.value());
  request.set_out_of_data(out_of_data_);
  request.set_ready(true);
  request.set_departing(departs_);
  last_reply_->NameIn(&request);
  if (training_->groups != nullptr) {
    worker::SetFailedView(training_->groups->failed_view(), &request);
  }
  return request;
}

// The end of the job comes with the heartbeats that go on beside.
void SimWorker::EndOfData() {
  out_of_data_ = true;
  Tell();
}

void SimWorker::SayGoodbye() {
  HeartbeatRequest goodbye = MakeHeartbeat();
  goodbye.set_leaving(true);
  Send(goodbye);
  Leave();
}

void SimWorker::Tell() { Send(MakeHeartbeat()); }

void SimWorker::Send(const HeartbeatRequest& heartbeat) {
  network_->Call<HeartbeatReply>(
      LinkToChief(), kHeartbeat.deadline,
      [chief = chief_, heartbeat](Callback<HeartbeatReply> answer) {
        chief->Heartbeat(heartbeat, std::move(answer));
      },
      [](const absl::StatusOr<HeartbeatReply>&) {});
}

void SimWorker::Beat() {
  const HeartbeatRequest request = MakeHeartbeat();
  network_->Call<HeartbeatReply>(
      LinkToChief(), kHeartbeat.deadline,
      [chief = chief_, request](Callback<HeartbeatReply> answer) {
        chief->Heartbeat(request, std::move(answer));
      },
      Mine<HeartbeatReply>([this](absl::StatusOr<HeartbeatReply> reply) {
        if (reply.ok()) last_reply_->Set(reply->id());
        if (!reply.ok()) {
          if (MayRepeat(reply.status())) Later(options_.heartbeat_pause, [this] { Beat(); });
        } else if (!reply->fail().empty()) {
          End(absl::InternalError(reply->fail()));
          Tell();
        } else if (reply->finish()) {
          End(absl::OkStatus());
          Tell();
        } else {
          const uint64_t life = life_;
          if (reply->has_group()) training_->groups->SetView(reply->group());
          if (life_ == life) MoveShards(*reply);
          if (life_ == life) Beat();
        }
      }));
}

}  // namespace lockstep::sim
