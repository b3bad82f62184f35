#include "tests/sim/sim_worker.h"

#include <utility>

#include "common/base/ids.h"
#include "common/base/philox.h"
#include "common/base/version.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kRetryPause = absl::Milliseconds(20);
constexpr absl::Duration kRegisterPause = absl::Milliseconds(100);

}  // namespace

float GradientOf(WorkerIndex worker, PushSeq push_seq, GlobalStep stamp, uint32_t variable,
                 int64_t element) {
  const uint64_t key = MixSeeds(MixSeeds(worker.value(), push_seq.value()),
                                MixSeeds(static_cast<uint64_t>(stamp.value()), variable));
  return UniformFloat(static_cast<uint32_t>(MixSeeds(key, static_cast<uint64_t>(element)))) - 0.5f;
}

SimWorker::SimWorker(SimWorkerOptions options, std::vector<PsData*> shards, SimChiefs* chief,
                     Network* network, EventQueue* events, Random* random)
    : options_(std::move(options)),
      shards_(std::move(shards)),
      chief_(chief),
      network_(network),
      events_(events),
      random_(random) {}

template <typename T>
Done<T> SimWorker::Mine(std::function<void(absl::StatusOr<T>)> step) {
  return
      [self = shared_from_this(), life = life_, step = std::move(step)](absl::StatusOr<T> result) {
        if (self->life_ == life && !self->end_.has_value()) step(std::move(result));
      };
}

void SimWorker::Later(absl::Duration delay, std::function<void()> step) {
  events_->After(delay, [self = shared_from_this(), life = life_, step = std::move(step)] {
    if (self->life_ == life && !self->end_.has_value()) step();
  });
}

WorkerIdentity SimWorker::Identity() const {
  WorkerIdentity identity;
  identity.set_job(job_.job_id());
  identity.set_epoch(job_.epoch());
  identity.set_worker(options_.index.value());
  identity.set_incarnation(incarnation_);
  return identity;
}

void SimWorker::Start() {
  ++life_;
  incarnation_ = MixSeeds(options_.index.value() + 1, random_->Below(UINT64_MAX)) | 1;
  end_.reset();
  done_ = false;
  out_of_data_ = false;
  push_seq_ = PushSeq();
  dequeue_seq_ = DequeueSeq();
  token_.reset();
  ahead_.assign(shards_.size(), GlobalStep(-1));
  Register();
}

void SimWorker::End(absl::Status status) {
  if (!end_.has_value()) end_ = std::move(status);
}

bool SimWorker::MayRepeat(const absl::Status& error) {
  if (absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error) ||
      absl::IsResourceExhausted(error)) {
    return true;
  }
  if (absl::IsAborted(error)) {
    Start();  // given up by the chief after a silence: joins anew
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
  network_->Call<RegisterTaskReply>(
      [chief = chief_, request](Done<RegisterTaskReply> answer) {
        chief->Register(request, std::move(answer));
      },
      Mine<RegisterTaskReply>([this](absl::StatusOr<RegisterTaskReply> reply) {
        if (!reply.ok()) {
          if (MayRepeat(reply.status())) Later(kRegisterPause, [this] { Register(); });
        } else if (reply->done()) {
          End(absl::OkStatus());
        } else if (!reply->ready()) {
          Register();
        } else {
          job_ = *std::move(reply);
          local_step_ = GlobalStep(job_.start_step());
          starts_.push_back(local_step_);
          Beat();
          PullAll();
        }
      }));
}

HeartbeatRequest SimWorker::MakeHeartbeat() const {
  HeartbeatRequest request;
  request.set_job_id(job_.job_id());
  request.set_worker(options_.index.value());
  request.set_incarnation(incarnation_);
  request.set_local_step(local_step_.value());
  request.set_out_of_data(out_of_data_);
  return request;
}

// Tells so at once; the end of the job comes with the heartbeats that go on beside.
void SimWorker::EndOfData() {
  out_of_data_ = true;
  network_->Call<HeartbeatReply>(
      [chief = chief_, request = MakeHeartbeat()](Done<HeartbeatReply> answer) {
        chief->Heartbeat(request, std::move(answer));
      },
      [](const absl::StatusOr<HeartbeatReply>&) {});
}

void SimWorker::Beat() {
  const HeartbeatRequest request = MakeHeartbeat();
  network_->Call<HeartbeatReply>(
      [chief = chief_, request](Done<HeartbeatReply> answer) {
        chief->Heartbeat(request, std::move(answer));
      },
      Mine<HeartbeatReply>([this](absl::StatusOr<HeartbeatReply> reply) {
        if (!reply.ok()) {
          if (MayRepeat(reply.status())) Later(kRetryPause, [this] { Beat(); });
        } else if (!reply->fail().empty()) {
          End(absl::InternalError(reply->fail()));
        } else if (reply->finish()) {
          End(absl::OkStatus());
        } else {
          Beat();
        }
      }));
}

void SimWorker::PullAll() {
  if (push_seq_.value() >= options_.batches) return EndOfData();
  pending_ = shards_.size();
  stamps_.assign(shards_.size(), local_step_);
  overtaken_ = false;
  for (size_t shard = 0; shard < shards_.size(); ++shard) Pull(shard);
}

PullRequest SimWorker::PullOf(size_t shard, GlobalStep version) const {
  PullRequest request;
  *request.mutable_worker() = Identity();
  request.set_version(version.value());
  for (const VariableSpec& spec : job_.placement().variables()) {
    if (spec.shard() == shard && spec.trainable()) request.add_pieces()->set_variable(spec.id());
  }
  return request;
}

void SimWorker::Pull(size_t shard) {
  const PullRequest request = PullOf(shard, local_step_);
  if (request.pieces_size() == 0 || ahead_[shard] == local_step_) {
    if (--pending_ == 0) Compute();
    return;
  }
  shards_[shard]->Pull(request,
                       Mine<std::unique_ptr<PulledValues>>(
                           [this, shard](absl::StatusOr<std::unique_ptr<PulledValues>> values) {
                             if (!values.ok()) {
                               if (MayRepeat(values.status()))
                                 Later(kRetryPause, [this, shard] { Pull(shard); });
                               return;
                             }
                             const GlobalStep version((*values)->header().version());
                             if (asynchronous()) stamps_[shard] = version;
                             overtaken_ |= !asynchronous() && version > local_step_;
                             if (--pending_ == 0) Compute();
                           }));
}

void SimWorker::Compute() {
  if (overtaken_) return AskForToken();
  Later(random_->Between(options_.least_compute, options_.most_compute), [this] {
    push_seq_ = push_seq_.next();
    pending_ = shards_.size();
    for (size_t shard = 0; shard < shards_.size(); ++shard) Push(shard);
  });
}

void SimWorker::Push(size_t shard) {
  PushRequest request;
  *request.mutable_worker() = Identity();
  request.set_push_seq(push_seq_.value());
  request.set_local_step(stamps_[shard].value());
  std::vector<float> payload;
  const PushSeq seed = options_.same_every_time ? PushSeq() : push_seq_;
  for (const VariableSpec& spec : job_.placement().variables()) {
    if (spec.shard() != shard) continue;
    PushPiece* piece = request.add_pieces();
    piece->set_variable(spec.id());
    piece->set_dtype(FLOAT32);
    piece->add_dims(spec.dims(0));
    piece->set_size(static_cast<uint64_t>(spec.dims(0)) * sizeof(float));
    for (int64_t i = 0; i < spec.dims(0); ++i)
      payload.push_back(GradientOf(options_.index, seed, stamps_[shard], spec.id(), i));
  }
  if (request.pieces_size() == 0) {
    if (--pending_ == 0) Pushed();
    return;
  }
  if (joins() && random_->Chance(0.5)) return PushForNext(shard, std::move(request), payload);
  shards_[shard]->Push(request, {std::as_bytes(std::span(payload))},
                       Mine<PushReply>([this, shard](const absl::StatusOr<PushReply>& reply) {
                         AnswerPush(shard, reply);
                       }));
}

void SimWorker::PushForNext(size_t shard, PushRequest request, const std::vector<float>& payload) {
  NextRequest* const next = request.mutable_next();
  if (shard == kStepShard) next->set_dequeue_seq(dequeue_seq_.next().value());
  *next->mutable_pull() = PullOf(shard, local_step_.next());
  next->mutable_pull()->clear_worker();
  if (next->pull().pieces_size() == 0) next->clear_pull();
  shards_[shard]->PushPull(
      request, {std::as_bytes(std::span(payload))},
      Mine<PushPullReply>([this, shard](const absl::StatusOr<PushPullReply>& reply) {
        if (!reply.ok()) return AnswerPush(shard, reply.status());
        if (reply->push.next().has_token()) token_ = reply->push.next().token();
        if (reply->values != nullptr) ahead_[shard] = GlobalStep(reply->values->header().version());
        AnswerPush(shard, reply->push);
      }));
}

void SimWorker::AnswerPush(size_t shard, const absl::StatusOr<PushReply>& reply) {
  if (!reply.ok()) {
    if (MayRepeat(reply.status())) Later(kRetryPause, [this, shard] { Push(shard); });
    return;
  }
  done_ |= reply->done();
  if (--pending_ == 0) Pushed();
}

void SimWorker::Pushed() {
  if (!asynchronous()) return AskForToken();
  if (!done_) PullAll();  // otherwise the chief tells the end
}

void SimWorker::AskForToken() {
  dequeue_seq_ = dequeue_seq_.next();
  if (token_.has_value()) return GoOn(*std::exchange(token_, std::nullopt));
  AskAgain();
}

void SimWorker::AskAgain() {
  DequeueTokenRequest request;
  *request.mutable_worker() = Identity();
  request.set_dequeue_seq(dequeue_seq_.value());
  shards_[kStepShard]->DequeueToken(
      request, Mine<DequeueTokenReply>([this](absl::StatusOr<DequeueTokenReply> token) {
        if (!token.ok()) {
          if (MayRepeat(token.status())) Later(kRetryPause, [this] { AskAgain(); });
        } else {
          GoOn(*token);
        }
      }));
}

void SimWorker::GoOn(const DequeueTokenReply& token) {
  if (token.done()) return End(absl::OkStatus());
  local_step_ = GlobalStep(token.step());
  PullAll();
}

}  // namespace lockstep::sim
