// Clusters of two to four workers driven from a seed, one call after another: pushes cut into
// chunks that come in any order, twice or late, grants early and late, workers replaced in the
// middle of everything. Every answer and every published value is compared with the model's.
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "tests/unit/ps/shard/shard_harness.h"
#include "tests/unit/ps/shard/shard_model.h"

namespace lockstep::ps {
namespace {

using test::kJob;
using test::Message;
using test::PlacementOf;
using test::PlanOf;
using test::Reply;
using test::ShardModel;

constexpr int64_t kSteps = 6;
constexpr int kMaxActions = 100000;

using Gradient = std::vector<std::vector<float>>;  // by variable

struct Letter {
  uint32_t worker;
  uint64_t incarnation;
  uint64_t push_seq;
  int64_t stamp;
  std::vector<ShardModel::Piece> pieces;
  std::shared_ptr<const Gradient> gradient;
};

struct SimWorker {
  uint64_t incarnation = 0;
  uint64_t push_seq = 0;
  uint64_t dequeue_seq = 0;
  int64_t stamp = 0;
  int64_t pushed_stamp = -1;  // of this incarnation
  bool is_pushing = false;
  bool is_done = false;
  std::map<size_t, PushStatus> statuses;  // of the push under way
  std::optional<Reply<Token>> token;
};

struct Waiting {
  int64_t version;
  std::vector<size_t> variables;
  Reply<PullResult> reply;
  uint32_t worker;
};

class Simulation {
 public:
  explicit Simulation(uint32_t seed) : random_(seed) {
    const bool is_fifo = Chance(0.4);
    workers_.resize(2 + Draw(3));
    aggregate_ = 1 + static_cast<uint32_t>(Draw(workers_.size()));
    std::vector<test::SpecText> specs;
    const size_t count = 2 + Draw(2);
    for (size_t i = 0; i < count; ++i) {
      sizes_.push_back(1 + Draw(7));
      specs.push_back(
          {"v" + std::to_string(i), {static_cast<int64_t>(sizes_[i])}, 0, i + 1 < count});
    }
    model_.emplace(sizes_, !is_fifo);
    is_fifo_ = is_fifo;
    for (SimWorker& worker : workers_) worker.incarnation = ++last_incarnation_;
    SetView();
    CreateVariablesRequest plan = PlanOf(PlacementOf(specs), static_cast<uint32_t>(workers_.size()),
                                         aggregate_, is_fifo ? FIFO : PER_REPLICA);
    if (is_fifo && Chance(0.5)) plan.set_init_tokens(static_cast<int64_t>(Draw(4)));
    REQUIRE(shard_.CreateVariables(plan).ok());
  }

  void Run() {
    for (int action = 0; global_step_ < kSteps; ++action) {
      REQUIRE(action < kMaxActions);  // it must not get stuck
      Act();
      CheckWaiting();
      REQUIRE(shard_.GetView().shard_step == GlobalStep(model_->step()));
    }
    const ShardReport report = shard_.Report();
    CHECK(report.accepted == model_->accepted());
    CHECK(report.stale == model_->stale());
    CHECK_FALSE(model_->counted_twice());
    CHECK(model_->worst_error() < 1e-6);
    for (size_t variable = 0; variable < sizes_.size(); ++variable) {
      CHECK(Pulled(variable, kSteps) == model_->ValueAt(variable, kSteps));
    }
  }

 private:
  size_t Draw(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }
  bool Chance(double probability) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
  }
  WorkerIdentity Identity(uint32_t worker, uint64_t incarnation) const {
    return {kJob, Epoch(1), WorkerIndex(worker), Incarnation(incarnation)};
  }
  WorkerIdentity Identity(uint32_t worker) const {
    return Identity(worker, workers_[worker].incarnation);
  }

  void SetView() {
    View view{test::CommandOf(test::kJob, 1), Epoch(1), {}, ShardIndex(0)};
    for (uint32_t worker = 0; worker < workers_.size(); ++worker) {
      view.members.push_back({WorkerIndex(worker), Incarnation(workers_[worker].incarnation)});
    }
    REQUIRE(shard_.SetView(view).ok());
  }

  void Act() {
    const uint32_t worker = static_cast<uint32_t>(Draw(workers_.size()));
    switch (Draw(16)) {
      case 0:
        return MaybeGrant();
      case 1:
        return MaybeCommit();
      case 2:
        return Pull(worker);
      case 3:
        return Chance(0.1) ? ReplaceWorker(worker) : Go(worker);
      case 4:
        return Chance(0.1) ? PushAgain(worker) : Go(worker);
      case 5:
      case 6:
      case 7:
        return Go(worker);
      default:
        return Deliver();
    }
  }

  // The chief's grants come early or late, and sometimes again.
  void MaybeGrant() {
    const bool again = Chance(0.2) && granted_ > model_->step();
    if (!again && granted_ > model_->step() + 1) return;
    const int64_t step = again ? granted_ - 1 : granted_;
    test::ModelGrant grant{aggregate_, 0.25f * static_cast<float>(1 + Draw(4))};
    granted_ = step + 1;
    model_->Grant(step, grant);
    const Reply<ClosedStep> reply;
    shard_.Grant({.command = test::CommandOf(test::kJob, 1),
                  .step = GlobalStep(step),
                  .required = grant.required,
                  .learning_rate = grant.learning_rate},
                 reply.done());
    grants_[step].push_back(reply);
    for (const auto& [granted, replies] : grants_) {
      const bool is_closed = granted < model_->step();
      for (size_t i = 0; i < replies.size(); ++i) {
        const bool is_newest = i + 1 == replies.size();
        REQUIRE(replies[i].calls() == (is_newest && !is_closed ? 0 : 1));
        if (!replies[i].IsParked()) REQUIRE(replies[i].status().ok() == is_newest);
      }
    }
  }

  void MaybeCommit() {
    const int64_t step = Chance(0.2) && global_step_ > 0 ? global_step_ - 1 : global_step_;
    const auto committed =
        shard_.CommitStep(test::CommandOf(test::kJob, 1), GlobalStep(step), false);
    REQUIRE(committed.ok() == (step < model_->step()));
    if (committed.ok()) global_step_ = committed->value();
  }

  void ReplaceWorker(uint32_t index) {
    workers_[index] = SimWorker{};
    workers_[index].incarnation = ++last_incarnation_;
    workers_[index].stamp = global_step_;
    model_->Replace(index);
    SetView();
  }

  // The next thing in a worker's life.
  void Go(uint32_t index) {
    SimWorker& worker = workers_[index];
    if (worker.token.has_value()) {
      if (worker.token->IsParked()) {
        if (Chance(0.3)) Dequeue(index);  // asks again
        return;
      }
      REQUIRE(worker.token->status().ok());
      const int64_t step = (*worker.token)->step.value();
      if (!is_fifo_) REQUIRE(step > worker.pushed_stamp);
      REQUIRE(step <= global_step_);
      worker.stamp = step;
      worker.token.reset();
      return;
    }
    if (!worker.is_pushing) return StartPush(index);
    if (worker.statuses.size() < sizes_.size()) {
      if (Chance(0.2)) Ask(index);
      return;
    }
    worker.is_pushing = false;
    ++worker.dequeue_seq;
    Dequeue(index);
  }

  void Dequeue(uint32_t index) {
    SimWorker& worker = workers_[index];
    worker.token.emplace();
    shard_.DequeueToken({Identity(index), DequeueSeq(worker.dequeue_seq)}, worker.token->done());
  }

  // A worker that does not know what became of its push sends it once more, under a new number.
  void PushAgain(uint32_t index) {
    if (!is_fifo_ && workers_[index].is_pushing) StartPush(index);
  }

  void StartPush(uint32_t index) {
    SimWorker& worker = workers_[index];
    worker.is_pushing = true;
    worker.statuses.clear();
    worker.pushed_stamp = worker.stamp;
    ++worker.push_seq;
    auto gradient = std::make_shared<Gradient>();
    std::mt19937 values(is_fifo_ ? static_cast<uint32_t>(Draw(1u << 30))
                                 : index * 1000 + static_cast<uint32_t>(worker.stamp));
    for (const size_t size : sizes_) {
      gradient->emplace_back();
      for (size_t i = 0; i < size; ++i) {
        gradient->back().push_back(std::uniform_real_distribution<float>(-1, 1)(values));
      }
    }
    Letter letter{index, worker.incarnation, worker.push_seq, worker.stamp, {}, gradient};
    std::vector<Letter> letters;
    for (size_t variable = 0; variable < sizes_.size(); ++variable) {
      const uint64_t bytes = sizes_[variable] * sizeof(float);
      uint64_t at = 0;
      while (at < bytes) {
        const uint64_t size = Chance(0.4) ? bytes - at : 1 + Draw(bytes - at);
        // Overlaps with what came before now and then.
        const uint64_t begin = Chance(0.2) ? Draw(at + 1) : at;
        Letter chunk = letter;
        chunk.pieces = {{variable, begin, at + size - begin, &(*gradient)[variable]}};
        letters.push_back(chunk);
        at += size;
      }
      // Two variables in one message.
      if (variable > 0 && letters.size() >= 2 && Chance(0.5)) {
        Letter& last = letters.back();
        Letter& before = letters[letters.size() - 2];
        if (last.pieces[0].variable != before.pieces.back().variable) {
          before.pieces.push_back(last.pieces[0]);
          letters.pop_back();
        }
      }
    }
    network_.insert(network_.end(), letters.begin(), letters.end());
  }

  void Deliver() {
    if (network_.empty()) return;
    const size_t which = Draw(network_.size());
    const Letter letter = network_[which];
    if (!Chance(0.15)) {  // otherwise it stays, to be delivered again
      network_[which] = network_.back();
      network_.pop_back();
    }
    Message message(Identity(letter.worker, letter.incarnation), letter.push_seq, letter.stamp);
    for (const ShardModel::Piece& piece : letter.pieces) {
      const Shape shape({static_cast<int64_t>(sizes_[piece.variable])});
      message.Chunk(static_cast<uint32_t>(piece.variable), shape, *piece.gradient, piece.offset,
                    piece.size);
    }
    const auto result = shard_.Push(message.Ready(1 + Draw(9)));
    if (letter.incarnation != workers_[letter.worker].incarnation) {
      REQUIRE(absl::IsAborted(result.status()));
      return;
    }
    const std::vector<PushStatus> expected = model_->Push(
        letter.worker, letter.incarnation, letter.push_seq, letter.stamp, letter.pieces);
    REQUIRE(result.ok());
    REQUIRE(result->statuses == expected);
    Note(letter.worker, letter.push_seq, letter.pieces, expected);
  }

  void Ask(uint32_t index) {
    SimWorker& worker = workers_[index];
    Message message(Identity(index), worker.push_seq, worker.stamp);
    std::vector<ShardModel::Piece> pieces;
    for (size_t variable = 0; variable < sizes_.size(); ++variable) {
      if (worker.statuses.contains(variable)) continue;
      message.Ask(static_cast<uint32_t>(variable));
      pieces.push_back({variable, 0, 0, nullptr});
    }
    const auto result = shard_.Push(message.Ready());
    REQUIRE(result.ok());
    const std::vector<PushStatus> expected =
        model_->Ask(index, worker.incarnation, worker.push_seq, worker.stamp, pieces);
    REQUIRE(result->statuses == expected);
    Note(index, worker.push_seq, pieces, expected);
  }

  void Note(uint32_t index, uint64_t push_seq, const std::vector<ShardModel::Piece>& pieces,
            const std::vector<PushStatus>& statuses) {
    SimWorker& worker = workers_[index];
    if (push_seq != worker.push_seq || !worker.is_pushing) return;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (statuses[i] != PushStatus::kPending) worker.statuses[pieces[i].variable] = statuses[i];
    }
  }

  void Pull(uint32_t index) {
    Waiting waiting{static_cast<int64_t>(Draw(model_->step() + 3)), {}, {}, index};
    PullArguments arguments{Identity(index), GlobalStep(waiting.version), {}};
    for (size_t variable = 0; variable < sizes_.size(); ++variable) {
      if (!Chance(0.6)) continue;
      waiting.variables.push_back(variable);
      arguments.pieces.push_back({VariableId(static_cast<uint32_t>(variable))});
    }
    if (waiting.variables.empty()) return;
    int64_t newest = model_->newest(waiting.variables[0]);
    bool is_kept = true;
    for (const size_t variable : waiting.variables) {
      newest = std::min(newest, model_->newest(variable));
      is_kept = is_kept && waiting.version >= model_->newest(variable) - 1;
    }
    shard_.Pull(arguments, waiting.reply.done());
    REQUIRE(waiting.reply.IsParked() == (waiting.version > newest));
    if (waiting.reply.IsParked()) return waiting_.push_back(waiting);
    CheckPulled(waiting, is_kept ? waiting.version : newest);
  }

  // A parked pull is answered with its version the moment that this exists; or ended by a
  // repetition or because its worker is gone.
  void CheckWaiting() {
    std::vector<Waiting> still;
    for (Waiting& waiting : waiting_) {
      if (waiting.reply.IsParked()) {
        bool exists = true;
        for (const size_t variable : waiting.variables) {
          exists = exists && model_->newest(variable) >= waiting.version;
        }
        REQUIRE_FALSE(exists);
        still.push_back(waiting);
      } else if (waiting.reply.status().ok()) {
        CheckPulled(waiting, waiting.version);
      } else {
        REQUIRE((absl::IsUnavailable(waiting.reply.status()) ||
                 absl::IsAborted(waiting.reply.status())));
      }
    }
    waiting_ = std::move(still);
  }

  void CheckPulled(const Waiting& waiting, int64_t version) {
    REQUIRE(waiting.reply.status().ok());
    REQUIRE(waiting.reply->version == GlobalStep(version));
    for (size_t i = 0; i < waiting.variables.size(); ++i) {
      REQUIRE(test::ValuesOf(waiting.reply->pieces[i]) ==
              model_->ValueAt(waiting.variables[i], version));
    }
  }

  std::vector<float> Pulled(size_t variable, int64_t version) {
    const Reply<PullResult> reply;
    shard_.Pull({Identity(0), GlobalStep(version), {{VariableId(static_cast<uint32_t>(variable))}}},
                reply.done());
    return test::ValuesOf(reply->pieces[0]);
  }

  std::mt19937 random_;
  bool is_fifo_ = false;
  uint32_t aggregate_ = 1;
  std::vector<size_t> sizes_;
  std::vector<SimWorker> workers_;
  uint64_t last_incarnation_ = 1000;
  std::vector<Letter> network_;
  std::vector<Waiting> waiting_;
  std::map<int64_t, std::vector<Reply<ClosedStep>>> grants_;
  int64_t granted_ = 0;
  int64_t global_step_ = 0;
  std::optional<ShardModel> model_;
  Shard shard_{ShardOptions{}};
};

TEST_CASE("random clusters do what the model does") {
  for (uint32_t seed = 0; seed < 250; ++seed) {
    INFO("seed " << seed);
    Simulation(seed).Run();
  }
}

}  // namespace
}  // namespace lockstep::ps
