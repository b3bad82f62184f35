// Many threads at one shard: workers that send their chunks from two threads each, with
// repetitions, readers that hold on to versions, a chief that grants ahead, reports in between. Run
// it under ThreadSanitizer too.
#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "absl/synchronization/notification.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::IdentityOf;
using test::kJob;
using test::Message;
using test::PlacementOf;
using test::PlanOf;

constexpr int64_t kSteps = 40;
constexpr float kRate = 0.125f;
const std::vector<int64_t> kSizes = {257, 1, 1000, 33};

// All elements of a variable get the same gradient, so a torn value shows.
float GradientOf(uint32_t worker, int64_t step, size_t variable, float value) {
  return 0.25f * value + static_cast<float>(worker) * 0.1f + static_cast<float>(step % 7) -
         static_cast<float>(variable);
}

template <typename T>
absl::StatusOr<T> Await(const std::function<void(Done<T>)>& call) {
  absl::Notification answered;
  absl::StatusOr<T> result;
  call([&](absl::StatusOr<T> answer) {
    result = std::move(answer);
    answered.Notify();
  });
  answered.WaitForNotification();
  return result;
}

class Hammer {
 public:
  Hammer(uint32_t workers, uint32_t aggregate, TokenPolicy policy)
      : num_workers_(workers), aggregate_(aggregate) {
    std::vector<test::SpecText> specs;
    for (const int64_t size : kSizes) specs.push_back({"v" + std::to_string(specs.size()), {size}});
    VariablePlan plan = PlanOf(PlacementOf(specs), workers, aggregate, policy);
    plan.optimizer.mutable_momentum()->set_momentum(0.5f);
    plan.init_tokens = 0;
    Check(shard_.SetView(test::ViewOf(workers)).ok());
    Check(shard_.CreateVariables(plan).ok());
  }

  void Run() {
    std::vector<std::thread> threads;
    threads.emplace_back([this] { Command(); });
    for (uint32_t worker = 0; worker < num_workers_; ++worker) {
      threads.emplace_back([this, worker] { Work(worker); });
    }
    threads.emplace_back([this] { Watch(); });
    for (size_t i = 0; i + 1 < threads.size(); ++i) threads[i].join();
    is_over_ = true;
    threads.back().join();
  }

  // Element 0 of every variable at the end.
  std::vector<float> Final() {
    std::vector<float> values;
    for (const auto& variable : PullAll(0, kSteps)) values.push_back(variable[0]);
    return values;
  }

  bool failed() const { return failed_; }
  Shard& shard() { return shard_; }

 private:
  void Check(bool condition) {
    if (!condition) failed_ = true;
  }

  // Keeps two grants parked and commits each step.
  void Command() {
    std::vector<std::unique_ptr<absl::Notification>> closed;
    for (int64_t step = 0; step < kSteps; ++step) {
      closed.push_back(std::make_unique<absl::Notification>());
    }
    const auto grant = [&](int64_t step) {
      if (step >= kSteps) return;
      shard_.Grant({.command = {kJob, Term(1)},
                    .step = GlobalStep(step),
                    .required = aggregate_,
                    .learning_rate = kRate,
                    .keep_values = step % 8 == 0,
                    .keep_slots = step % 16 == 0},
                   [&, step](absl::StatusOr<ClosedStep> result) {
                     Check(result.ok());
                     closed[step]->Notify();
                   });
    };
    grant(0);
    grant(1);
    for (int64_t step = 0; step < kSteps; ++step) {
      closed[step]->WaitForNotification();
      Check(shard_.CommitStep({kJob, Term(1)}, GlobalStep(step), step + 1 == kSteps).ok());
      if (step % 8 == 0 && step >= 8) {
        Check(shard_.ReleaseSnapshot({kJob, Term(1)}, GlobalStep(step - 7)).ok());
      }
      grant(step + 2);
    }
  }

  void Work(uint32_t worker) {
    int64_t stamp = 0;
    for (uint64_t seq = 1;; ++seq) {
      const std::vector<std::vector<float>> values = PullAll(worker, stamp);
      PushAll(worker, seq, stamp, values);
      const auto token = Await<Token>([&](Done<Token> done) {
        shard_.DequeueToken({IdentityOf(worker), DequeueSeq(seq)}, std::move(done));
      });
      Check(token.ok());
      if (!token.ok() || token->done) return;
      stamp = token->step.value();
    }
  }

  std::vector<std::vector<float>> PullAll(uint32_t worker, int64_t version) {
    PullOrder order{IdentityOf(worker), GlobalStep(version), {}};
    for (uint32_t variable = 0; variable < kSizes.size(); ++variable) {
      order.pieces.push_back({VariableId(variable)});
    }
    const auto pulled =
        Await<PullResult>([&](Done<PullResult> done) { shard_.Pull(order, std::move(done)); });
    Check(pulled.ok());
    std::vector<std::vector<float>> values;
    if (!pulled.ok()) return values;
    Check(pulled->version >= GlobalStep(version));
    for (const PulledPiece& piece : pulled->pieces) {
      values.push_back(test::ValuesOf(piece));
      for (const float element : values.back()) Check(element == values.back()[0]);
    }
    return values;
  }

  void PushAll(uint32_t worker, uint64_t seq, int64_t stamp,
               const std::vector<std::vector<float>>& values) {
    std::vector<std::vector<float>> gradients;
    for (size_t variable = 0; variable < values.size(); ++variable) {
      gradients.emplace_back(kSizes[variable],
                             GradientOf(worker, stamp, variable, values[variable][0]));
    }
    std::vector<Message> messages;
    std::mt19937 random(static_cast<uint32_t>(seq * 100 + worker));
    for (uint32_t variable = 0; variable < gradients.size(); ++variable) {
      const uint64_t bytes = gradients[variable].size() * sizeof(float);
      const uint64_t chunk = 1 + random() % 900;
      for (uint64_t at = 0; at < bytes; at += chunk) {
        const Shape shape({kSizes[variable]});
        messages.emplace_back(IdentityOf(worker), seq, stamp);
        messages.back().Chunk(variable, shape, gradients[variable], at,
                              std::min(chunk, bytes - at));
      }
    }
    std::vector<size_t> order;
    for (size_t i = 0; i < messages.size(); ++i) {
      order.push_back(i);
      if (random() % 4 == 0) order.push_back(i);
    }
    std::shuffle(order.begin(), order.end(), random);
    const auto send = [&](size_t first) {
      for (size_t i = first; i < order.size(); i += 2) {
        Message copy = messages[order[i]];
        Check(shard_.Push(copy.Ready(100)).ok());
      }
    };
    std::thread other([&] { send(1); });
    send(0);
    other.join();
    // Both have been answered: everything is decided.
    Message ask(IdentityOf(worker), seq, stamp);
    for (uint32_t variable = 0; variable < gradients.size(); ++variable) ask.Ask(variable);
    const auto verdicts = shard_.Push(ask.Ready());
    Check(verdicts.ok());
    if (!verdicts.ok()) return;
    for (const Verdict verdict : verdicts->verdicts) Check(verdict != Verdict::kPending);
  }

  void Watch() {
    while (!is_over_) {
      const ShardReport report = shard_.Report();
      Check(report.state.global_step <= report.state.shard_step);
      Check(report.held_bytes <= 1u << 20);
      std::this_thread::yield();
    }
  }

  const uint32_t num_workers_;
  const uint32_t aggregate_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> is_over_ = false;
  Shard shard_{ShardOptions{}};
};

// The same training, one line after another.
std::vector<float> Reference(uint32_t workers) {
  std::vector<float> values(kSizes.size());
  std::vector<float> momenta(kSizes.size());
  for (int64_t step = 0; step < kSteps; ++step) {
    for (size_t variable = 0; variable < values.size(); ++variable) {
      float sum = GradientOf(0, step, variable, values[variable]);
      for (uint32_t worker = 1; worker < workers; ++worker) {
        sum += GradientOf(worker, step, variable, values[variable]);
      }
      const float mean = sum / static_cast<float>(workers);
      momenta[variable] = momenta[variable] * 0.5f + mean;
      values[variable] -= momenta[variable] * kRate;
    }
  }
  return values;
}

TEST_CASE("with every replica needed, threads change no bit of the result") {
  Hammer hammer(3, 3, PER_REPLICA);
  hammer.Run();
  CHECK_FALSE(hammer.failed());
  CHECK(hammer.Final() == Reference(3));
  const ShardReport report = hammer.shard().Report();
  CHECK(report.accepted == 3 * kSteps * kSizes.size());
  CHECK(report.stale == 0);
  CHECK(report.held_bytes == 0);
}

TEST_CASE("with a backup replica every step closes and no value is ever torn") {
  const TokenPolicy policy = GENERATE(PER_REPLICA, FIFO);
  Hammer hammer(4, 2, policy);
  hammer.Run();
  CHECK_FALSE(hammer.failed());
  const ShardReport report = hammer.shard().Report();
  CHECK(report.state.global_step == GlobalStep(kSteps));
  CHECK(report.accepted >= 2 * kSteps * kSizes.size());
}

}  // namespace
}  // namespace lockstep::ps
