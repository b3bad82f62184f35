#include "tests/sim/sim_worker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/lost_variables.h"
#include "common/base/philox.h"
#include "tests/sim/gradient.h"
#include "tests/sim/remote_ps.h"
#include "tests/sim/sim_options.h"
#include "worker/strategy/parameter_server/asynchronous_strategy.h"
#include "worker/strategy/parameter_server/parameter_server_strategy.h"
#include "worker/strategy/replicated/reduction_of_job.h"
#include "worker/strategy/replicated/replicated_strategy.h"

namespace lockstep::sim {

SimWorker::SimWorker(SimWorkerOptions options, const AddressBook* book, SimChiefs* chief,
                     Network* network, SimMembers* members, EventQueue* events, Random* random,
                     History* history)
    : options_(std::move(options)),
      book_(book),
      chief_(chief),
      network_(network),
      members_(members),
      events_(events),
      random_(random),
      history_(history) {}

void SimWorker::Later(absl::Duration delay, std::function<void()> step) {
  events_->After(delay, [self = shared_from_this(), life = life_, step = std::move(step)] {
    if (self->life_ == life && !self->end_.has_value()) step();
  });
}

void SimWorker::Start() {
  Leave();
  ++processes_;
  incarnation_ = MixSeeds(options_.index.value() + 1, random_->Below(UINT64_MAX)) | 1;
  member_ = members_->Add(incarnation_, node());
  end_.reset();
  out_of_data_ = has_taken_part_ = departs_ = false;
  pushes_ = 0;
  last_reply_.emplace();
  Register();
}

void SimWorker::Kill() {
  if (member_ != nullptr) events_->trace().NoteFault(Fault::kWorkerKilled);
  Leave();
}

void SimWorker::Leave() {
  ++life_;
  if (member_ != nullptr) members_->Kill(std::exchange(member_, nullptr));
  DropTraining();
}

void SimWorker::DropTraining() {
  if (training_ == nullptr) return;
  // The worker may be in one of its callbacks.
  events_->After(absl::ZeroDuration(),
                 [members = members_, training = std::exchange(training_, nullptr)]() mutable {
                   if (training->groups == nullptr) return training.reset();
                   training->strategy->Cancel();
                   members->Keep(std::move(training));
                 });
}

void SimWorker::End(absl::Status status) {
  if (!end_.has_value()) end_ = std::move(status);
}

std::string SimWorker::Describe() const {
  if (end_.has_value()) return absl::StrCat("ended: ", end_->ToString());
  if (training_ == nullptr) return is_dead() ? "is dead" : "registers";
  const std::string wait = training_->strategy->DescribeWait();
  return wait.empty() ? "computes" : absl::StrCat("waits for ", wait);
}

void SimWorker::MakeTraining() {
  const SyncDef& sync = job_.job().sync();
  worker::ShardGroupOptions options;
  WorkerIdentity* const identity = &options.session.identity;
  identity->set_job(job_.job_id());
  identity->set_epoch(job_.epoch());
  identity->set_worker(options_.index.value());
  identity->set_incarnation(incarnation_);
  options.session.asynchronous = sync.has_asynchronous();
  options.session.patience = absl::InfiniteDuration();
  options.token_per_replica = !sync.has_asynchronous() && sync.token_policy() == PER_REPLICA;
  options.shards_may_move = !job_.shards().empty();
  options.shard_names.assign(options_.ps_addresses.size(), "ps");
  if (!sync.has_asynchronous() && random_->Chance(0.5)) {
    // In several messages, and in chunks.
    options.session.push_chunk_bytes = options.session.fetch_chunk_bytes =
        static_cast<size_t>(random_->Between(options_.least_chunk, options_.most_chunk));
    options.session.bucket_bytes =
        static_cast<size_t>(random_->Between(0, options_.most_chunk / 2));
  }
  training_ = std::make_shared<Training>();
  training_->layout = *worker::VariableLayout::Create(job_.placement());
  ConnectShards();
  const worker::ShardGroupResources resources{
      .shards = training_->transports, .timer = events_, .clock = events_};
  std::vector<int64_t> most_rows;
  for (const worker::WholeVariable& variable : training_->layout.variables()) {
    most_rows.push_back(variable.sparse ? variable.shape.dim(0) : 0);
  }
  if (replicated()) {
    training_->strategy = MakeReplicated(options, resources);
  } else if (sync.has_asynchronous()) {
    training_->strategy = *worker::AsynchronousStrategy::Create(
        options, training_->layout, resources, most_rows, /*memory=*/nullptr);
  } else {
    training_->strategy = *worker::ParameterServerStrategy::Create(
        {.shards = options, .first_step = GlobalStep(job_.start_step())}, training_->layout,
        resources, most_rows, /*memory=*/nullptr);
  }
}

void SimWorker::ConnectShards() {
  const auto connect = [this](const std::string& address) -> std::unique_ptr<TensorTransport> {
    const ListeningPs& ps = book_->Find(address);
    return MakeRemoteData(ps.data, {node(), ps.node}, network_);
  };
  for (size_t shard = 0; shard < options_.ps_addresses.size(); ++shard) {
    if (job_.shards().empty()) {
      training_->shards.push_back(connect(options_.ps_addresses[shard]));
    } else {
      const ShardPlace& place = job_.shards(static_cast<int>(shard));
      auto movable =
          std::make_unique<FailoverTransport>(connect, place.address(), place.other_address());
      training_->movable.push_back(movable.get());
      training_->shards.push_back(std::move(movable));
    }
    training_->transports.push_back(training_->shards.back().get());
  }
}

void SimWorker::MoveShards(const HeartbeatReply& reply) {
  const uint64_t life = life_;
  // Calls that end may end this life.
  const std::shared_ptr<Training> training = training_;
  for (size_t shard = 0; shard < training->movable.size() && life_ == life; ++shard) {
    if (static_cast<int>(shard) >= reply.shards_size()) break;
    const ShardPlace& place = reply.shards(static_cast<int>(shard));
    training->movable[shard]->SetPlaces(place.address(), place.other_address());
  }
}

std::unique_ptr<worker::UpdateStrategy> SimWorker::MakeReplicated(
    const worker::ShardGroupOptions& options, const worker::ShardGroupResources& resources) {
  training_->loss_layout = *worker::ReplicatedStrategy::LossLayout(job_.placement());
  const auto reduction = [tensors = worker::ReducedTensors(training_->layout)](
                             int workers) -> absl::StatusOr<worker::GroupReduction> {
    auto chosen = worker::ReductionOf({}, {.workers = workers, .towers = 1}, tensors);
    if (!chosen.ok()) return chosen.status();
    return std::move(chosen->reduction);
  };
  auto groups = std::make_unique<SimGroupSource>(worker::GroupSourceOptions{
      .worker = options_.index.value(),
      .incarnation = incarnation_,
      .num_workers = static_cast<int>(job_.total_num_replicas()),
      .first_step = GlobalStep(job_.start_step()),
      .reduction = reduction,
      .shrinks = job_.job().sync().quorum_policy() == SHRINK,
      .shared_memory = false,
      .peers = &member_->service,
      .timer = events_,
      .clock = events_,
      .connect = [this, member = member_](const worker::Group::Member& to) {
        return members_->Connect(member, to.incarnation);
      }});
  training_->groups = groups.get();
  return *worker::ReplicatedStrategy::Create({.shards = options,
                                              .replicas = {},
                                              .optimizer = job_.job().optimizer(),
                                              .max_steps = job_.max_steps()},
                                             training_->layout, training_->loss_layout, resources,
                                             std::move(groups));
}

SimWorker::StepRows SimWorker::RowsAt(GlobalStep step) const {
  StepRows rows;
  for (const worker::WholeVariable& variable : training_->layout.variables()) {
    std::vector<int64_t>& memory = rows.memory.emplace_back();
    if (variable.sparse) {
      memory = RowsOf(options_.index, step, variable.parts[0].id.value(), variable.shape.dim(0));
    }
  }
  rows.views.assign(rows.memory.begin(), rows.memory.end());
  return rows;
}

void SimWorker::BeginStep(GlobalStep step) {
  if (!asynchronous()) local_step_ = step;
  if (pushes_ >= options_.batches) return EndOfData();
  const bool is_skipped = share_.has_value() && !share_->takes_part();
  has_taken_part_ |= share_.has_value() && !is_skipped;
  if (is_skipped && has_taken_part_ && departs_) return SayGoodbye();
  training_->rows = RowsAt(step);
  training_->strategy->BeginStep(
      {.step = step, .rows = training_->rows.views, .is_skipped = is_skipped},
      Mine<worker::StepValues>([this, step](const absl::StatusOr<worker::StepValues>& values) {
        if (!values.ok()) return OnFailure(values.status());
        if (values->is_superseded) return EndStep(std::nullopt);
        Note(*values);
        Later(random_->Between(options_.least_compute, options_.most_compute),
              [this, step, values = *values] { Compute(step, values); });
      }));
}

void SimWorker::Note(const worker::StepValues& values) {
  if (asynchronous()) return;  // each shard has a version of its own
  const std::span<const TensorView> views =
      values.by_tower.empty() ? values.values.views : values.by_tower[0].values.views;
  for (size_t i = 0; i < views.size(); ++i) {
    const std::span<const float> elements = views[i].as<float>();
    if (elements.empty()) continue;
    NotePulled({.version = values.version,
                .variable = training_->layout.variables()[i].parts[0].id.value(),
                .values = {elements.begin(), elements.end()},
                .epoch = Epoch(job_.epoch())},
               training_->rows.views[i], history_);
  }
}

void SimWorker::Compute(GlobalStep step, const worker::StepValues& values) {
  ++pushes_;
  const PushSeq seed(options_.same_every_time ? 0 : pushes_);
  const GlobalStep stamp = asynchronous() ? GlobalStep() : step;
  const std::span<const MutableTensorView> gradients =
      values.by_tower.empty() ? values.gradients : values.by_tower[0].gradients;
  for (int i = static_cast<int>(gradients.size()); i-- > 0;) {
    const uint32_t variable = training_->layout.variables()[i].parts[0].id.value();
    const std::span<float> gradient = gradients[i].as<float>();
    const std::span<const int64_t> rows = training_->rows.views[i];
    for (size_t k = 0; k < gradient.size(); ++k) {
      const auto at = static_cast<int64_t>(k);
      const int64_t element =
          rows.empty() ? at : rows[k / kRowElements] * kRowElements + at % kRowElements;
      gradient[k] = share_.has_value() ? GradientOf(*share_, stamp, variable, element)
                                       : GradientOf(options_.index, seed, stamp, variable, element);
    }
    training_->strategy->AddGradients({&i, 1});
  }
  std::optional<worker::StepInput> predicted;
  if (const auto next = training_->strategy->PredictNext()) {
    training_->next_rows = RowsAt(*next);
    predicted = {.step = *next, .rows = training_->next_rows.views};
  }
  EndStep(predicted);
}

void SimWorker::EndStep(std::optional<worker::StepInput> predicted) {
  training_->strategy->EndStep(
      predicted,
      Mine<worker::StepOutcome>(
          [this](const absl::StatusOr<worker::StepOutcome>& outcome) { OnOutcome(outcome); }));
}

void SimWorker::OnOutcome(const absl::StatusOr<worker::StepOutcome>& outcome) {
  if (!outcome.ok()) return OnFailure(outcome.status());
  // The end comes from the chief: the job may still go back to a checkpoint, and a worker may have
  // to store the last version in another one's place.
  if (outcome->done) return;
  if (share_.has_value() && !outcome->share.has_value()) {
    events_->trace().NoteViolation(
        absl::StrCat("replicas: the token of step ", outcome->next.value(), " has no share"));
  }
  share_ = outcome->share;
  BeginStep(outcome->next);
}

void SimWorker::OnFailure(const absl::Status& error) {
  // The chief goes back to a checkpoint without this process: the answer to a heartbeat says so.
  if (HasLostVariables(error)) return;
  // Somebody starts it again, as a new process.
  if (replicated() && absl::IsUnavailable(error)) return Start();
  LOCKSTEP_CHECK(!MayRepeat(error));  // the sessions repeat
}

}  // namespace lockstep::sim
