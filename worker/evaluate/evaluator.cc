#include "worker/evaluate/evaluator.h"

#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/await.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "worker/device/pinned_tensor.h"
#include "worker/evaluate/evaluate_range.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<Evaluator>> Evaluator::Create(
    EvaluatorOptions options, const ModelGraph* graph, const VariableLayout* layout,
    std::span<TensorTransport* const> shards, Timer* timer, const TestSet* test_set,
    std::function<void()> on_result) {
  std::unique_ptr<Evaluator> made(new Evaluator(std::move(options), graph, layout, shards, timer,
                                                test_set, std::move(on_result)));
  if (absl::Status status = made->MakeTower({}); !status.ok()) {
    return Annotate(status, "the model for evaluations");
  }
  // Not at the first lease: to pin memory may wait for the device, on which others train by then.
  LOCKSTEP_RETURN_IF_ERROR(made->MakeVariables());
  made->thread_ = std::thread([evaluator = made.get()] { evaluator->Work(); });
  return made;
}

Evaluator::Evaluator(EvaluatorOptions options, const ModelGraph* graph,
                     const VariableLayout* layout, std::span<TensorTransport* const> shards,
                     Timer* timer, const TestSet* test_set, std::function<void()> on_result)
    : options_(std::move(options)),
      graph_(graph),
      layout_(layout),
      shards_(shards.begin(), shards.end()),
      timer_(timer),
      test_set_(test_set),
      on_result_(std::move(on_result)) {}

Evaluator::~Evaluator() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Evaluator::SetLeases(const google::protobuf::RepeatedPtrField<EvaluationLease>& leases) {
  std::map<uint64_t, EvaluationLease> held;
  for (const EvaluationLease& lease : leases) held[lease.id()] = lease;
  absl::MutexLock lock(&mutex_);
  std::erase_if(results_, [&](const auto& entry) { return !held.contains(entry.first); });
  std::erase_if(held, [this](const auto& entry) {
    mutex_.AssertHeld();
    return entry.first == in_hand_ || results_.contains(entry.first);
  });
  waiting_ = std::move(held);
}

std::vector<EvaluationResult> Evaluator::Results() const {
  absl::MutexLock lock(&mutex_);
  std::vector<EvaluationResult> results;
  for (const auto& [id, result] : results_) results.push_back(result);
  return results;
}

bool Evaluator::HasWork() const { return stopping_ || !waiting_.empty(); }

void Evaluator::Work() {
  while (true) {
    EvaluationLease lease;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &Evaluator::HasWork));
      if (stopping_) return;
      lease = waiting_.begin()->second;
      waiting_.erase(waiting_.begin());
      in_hand_ = lease.id();
    }
    const absl::StatusOr<EvaluationResult> result = Evaluate(lease);
    {
      absl::MutexLock lock(&mutex_);
      in_hand_ = 0;
      if (result.ok()) results_[lease.id()] = *result;
    }
    if (result.ok()) {
      on_result_();
    } else {
      // The chief leases the range to somebody else in time.
      log::Warning(absl::StrCat("evaluation of examples ", lease.begin(), " to ", lease.end(),
                                " with version ", lease.version(),
                                " failed: ", result.status().message()));
    }
  }
}

absl::Status Evaluator::MakeTower(std::vector<int64_t> sizes) {
  // With the sizes of all other ranges: they are cut at whole batches, but for the last one.
  for (const int64_t size : BatchSizes(test_set_->num_examples(), options_.batch)) {
    if (!absl::c_linear_search(sizes, size)) sizes.push_back(size);
  }
  batches_.clear();
  tower_.reset();
  LOCKSTEP_ASSIGN_OR_RETURN(tower_, Tower::Create(*graph_, options_.device, *options_.ops,
                                                  {.batches = sizes, .training = false}));
  batches_ = std::move(sizes);
  return absl::OkStatus();
}

absl::Status Evaluator::MakeVariables() {
  SessionOptions options;
  options.identity = options_.identity;
  options.averages = options_.averages;
  options.patience = options_.patience;
  std::vector<ShardSession*> sessions;
  for (TensorTransport* shard : shards_) {
    sessions_.push_back(std::make_unique<ShardSession>(options, shard, timer_));
    sessions.push_back(sessions_.back().get());
  }
  rows_ = std::make_unique<BatchRows>(*graph_);
  LOCKSTEP_ASSIGN_OR_RETURN(
      variables_,
      VariableCache::Create(*layout_, sessions, VariableCache::kCopied,
                            PinnedTensors(options_.device), rows_->MostRows(options_.batch)));
  return absl::OkStatus();
}

absl::Status Evaluator::Prepare(const EvaluationLease& lease) {
  std::vector<int64_t> sizes = BatchSizes(lease.end() - lease.begin(), options_.batch);
  const auto is_planned = [this](int64_t size) { return absl::c_linear_search(batches_, size); };
  if (absl::c_all_of(sizes, is_planned)) return absl::OkStatus();
  return MakeTower(std::move(sizes));
}

absl::StatusOr<VariableValues> Evaluator::VariablesOf(GlobalStep version, const Batch& batch) {
  rows_->Collect({&batch, 1});
  LOCKSTEP_ASSIGN_OR_RETURN(const GlobalStep got, Await<GlobalStep>([&](Callback<GlobalStep> done) {
                              variables_->Fetch(version, rows_->rows(), std::move(done));
                            }));
  if (got == version) return VariableValues{variables_->views(), rows_->rows()};
  return absl::FailedPreconditionError(
      absl::StrCat("the ps have version ", got.value(), " by now"));
}

absl::StatusOr<EvaluationResult> Evaluator::Evaluate(const EvaluationLease& lease) {
  LOCKSTEP_RETURN_IF_ERROR(Prepare(lease));
  const auto variables = [this, &lease](const Batch& batch) {
    return VariablesOf(GlobalStep(lease.version()), batch);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const Tower::Evaluation counts,
                            EvaluateRange(tower_.get(), *test_set_, VariablesFor(variables),
                                          lease.begin(), lease.end(), options_.batch));
  EvaluationResult result;
  result.set_lease(lease.id());
  result.set_examples(counts.examples);
  result.set_correct(counts.correct);
  result.set_loss_sum(counts.loss_sum);
  return result;
}

}  // namespace lockstep::worker
