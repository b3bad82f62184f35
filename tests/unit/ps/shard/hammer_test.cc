// Many threads at one shard: workers that send their chunks from two threads each, with
// repetitions, readers that hold on to versions, a chief that grants ahead, reports in between. Run
// it under ThreadSanitizer too.
#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
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
// Close range by range.
const std::vector<int64_t> kLargeSizes = {200'003, 1, 70'000};

// All elements of a variable get the same gradient, so a torn value shows.
float GradientOf(uint32_t worker, int64_t step, size_t variable, float value) {
  return 0.25f * value + static_cast<float>(worker) * 0.1f + static_cast<float>(step % 7) -
         static_cast<float>(variable);
}

template <typename T>
absl::StatusOr<T> Await(const std::function<void(Callback<T>)>& call) {
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
  Hammer(uint32_t workers, uint32_t aggregate, TokenPolicy policy,
         std::vector<int64_t> sizes = kSizes, int64_t steps = kSteps)
      : num_workers_(workers), aggregate_(aggregate), sizes_(std::move(sizes)), steps_(steps) {
    std::vector<test::SpecText> specs;
    for (const int64_t size : sizes_) specs.push_back({"v" + std::to_string(specs.size()), {size}});
    CreateVariablesRequest plan = PlanOf(PlacementOf(specs), workers, aggregate, policy);
    plan.mutable_optimizer()->mutable_momentum()->set_momentum(0.5f);
    plan.set_init_tokens(0);
    plan.set_every_replica_counts(policy == PER_REPLICA && workers == aggregate);
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
    for (const auto& variable : PullAll(0, steps_)) values.push_back(variable[0]);
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
    for (int64_t step = 0; step < steps_; ++step) {
      closed.push_back(std::make_unique<absl::Notification>());
    }
    const auto grant = [&](int64_t step) {
      if (step >= steps_) return;
      shard_.Grant({.command = test::CommandOf(test::kJob, 1),
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
    for (int64_t step = 0; step < steps_; ++step) {
      closed[step]->WaitForNotification();
      Check(shard_.CommitStep(test::CommandOf(test::kJob, 1), GlobalStep(step), step + 1 == steps_)
                .ok());
      if (step % 8 == 0 && step >= 8) {
        Check(shard_.ReleaseSnapshot(test::CommandOf(test::kJob, 1), GlobalStep(step - 7)).ok());
      }
      grant(step + 2);
    }
  }

  void Work(uint32_t worker) {
    int64_t stamp = 0;
    for (uint64_t seq = 1;; ++seq) {
      const std::vector<std::vector<float>> values = PullAll(worker, stamp);
      std::vector<Part> parts = PullParts(worker, stamp + 1);
      PushAll(worker, seq, stamp, values);
      for (Part& part : parts) part.answered->WaitForNotification();
      CheckParts(parts, stamp + 1);
      const auto token = Await<Token>([&](Callback<Token> done) {
        shard_.DequeueToken({IdentityOf(worker), DequeueSeq(seq)}, std::move(done));
      });
      Check(token.ok());
      if (!token.ok() || token->done) return;
      stamp = token->step.value();
    }
  }

  std::vector<std::vector<float>> PullAll(uint32_t worker, int64_t version) {
    PullArguments arguments{IdentityOf(worker), GlobalStep(version), {}};
    for (uint32_t variable = 0; variable < sizes_.size(); ++variable) {
      arguments.pieces.push_back({VariableId(variable)});
    }
    const auto pulled = Await<PullResult>(
        [&](Callback<PullResult> done) { shard_.Pull(arguments, std::move(done)); });
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

  // Of the next version, in parts that may be there one by one.
  struct Part {
    std::unique_ptr<absl::Notification> answered = std::make_unique<absl::Notification>();
    std::shared_ptr<absl::StatusOr<PullResult>> result =
        std::make_shared<absl::StatusOr<PullResult>>();
  };

  std::vector<Part> PullParts(uint32_t worker, int64_t version) {
    constexpr uint64_t kPart = 100'000;
    std::vector<Part> parts;
    for (uint32_t variable = 0; variable < sizes_.size(); ++variable) {
      const uint64_t bytes = static_cast<uint64_t>(sizes_[variable]) * sizeof(float);
      for (uint64_t at = 0; at < bytes; at += kPart) {
        Part& part = parts.emplace_back();
        shard_.Pull({IdentityOf(worker),
                     GlobalStep(version),
                     {{VariableId(variable), at, std::min(kPart, bytes - at)}}},
                    [answered = part.answered.get(),
                     result = part.result](absl::StatusOr<PullResult> answer) {
                      *result = std::move(answer);
                      answered->Notify();
                    });
      }
    }
    return parts;
  }

  void CheckParts(const std::vector<Part>& parts, int64_t version) {
    absl::flat_hash_map<VariableId, float> value_of;
    for (const Part& part : parts) {
      Check(part.result->ok());
      if (!part.result->ok()) return;
      // Behind, where this worker is a straggler.
      Check((*part.result)->version >= GlobalStep(version));
      if ((*part.result)->version != GlobalStep(version)) return;
      const PulledPiece& piece = (*part.result)->pieces[0];
      const std::vector<float> values = test::ValuesOf(piece);
      const float value = value_of.emplace(piece.variable, values[0]).first->second;
      for (const float element : values) Check(element == value);
    }
  }

  void PushAll(uint32_t worker, uint64_t seq, int64_t stamp,
               const std::vector<std::vector<float>>& values) {
    std::vector<std::vector<float>> gradients;
    for (size_t variable = 0; variable < values.size(); ++variable) {
      gradients.emplace_back(sizes_[variable],
                             GradientOf(worker, stamp, variable, values[variable][0]));
    }
    std::vector<Message> messages;
    std::mt19937 random(static_cast<uint32_t>(seq * 100 + worker));
    for (uint32_t variable = 0; variable < gradients.size(); ++variable) {
      const uint64_t bytes = gradients[variable].size() * sizeof(float);
      const uint64_t chunk = 1 + random() % std::max<uint64_t>(900, bytes / 2);
      for (uint64_t at = 0; at < bytes; at += chunk) {
        const Shape shape({sizes_[variable]});
        messages.emplace_back(IdentityOf(worker), seq, stamp);
        messages.back().Chunk(variable, shape, gradients[variable], at,
                              std::min(chunk, bytes - at));
      }
    }
    std::vector<size_t> arguments;
    for (size_t i = 0; i < messages.size(); ++i) {
      arguments.push_back(i);
      if (random() % 4 == 0) arguments.push_back(i);
    }
    std::shuffle(arguments.begin(), arguments.end(), random);
    const size_t bytes_at_a_time = sizes_ == kLargeSizes ? 30'000 : 100;
    const auto send = [&](size_t first) {
      for (size_t i = first; i < arguments.size(); i += 2) {
        Message copy = messages[arguments[i]];
        Check(shard_.Push(i % 3 == 0 ? copy.Ready(bytes_at_a_time) : copy.Kept(bytes_at_a_time))
                  .ok());
      }
    };
    std::thread other([&] { send(1); });
    send(0);
    other.join();
    // Both have been answered: everything is decided.
    Message ask(IdentityOf(worker), seq, stamp);
    for (uint32_t variable = 0; variable < gradients.size(); ++variable) ask.Ask(variable);
    const auto statuses = shard_.Push(ask.Ready());
    Check(statuses.ok());
    if (!statuses.ok()) return;
    for (const PushStatus verdict : statuses->statuses) Check(verdict != PushStatus::kPending);
  }

  void Watch() {
    while (!is_over_) {
      const ShardReport report = shard_.Report();
      Check(report.state.global_step <= report.state.shard_step);
      Check(report.held_bytes <= 1u << 24);
      std::this_thread::yield();
    }
  }

  const uint32_t num_workers_;
  const uint32_t aggregate_;
  const std::vector<int64_t> sizes_;
  const int64_t steps_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> is_over_ = false;
  Shard shard_{ShardOptions{}};
};

// The same training, one line after another.
std::vector<float> Reference(uint32_t workers, size_t num_variables, int64_t steps) {
  std::vector<float> values(num_variables);
  std::vector<float> momenta(num_variables);
  for (int64_t step = 0; step < steps; ++step) {
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
  CHECK(hammer.Final() == Reference(3, kSizes.size(), kSteps));
  const ShardReport report = hammer.shard().Report();
  CHECK(report.accepted == 3 * kSteps * kSizes.size());
  CHECK(report.stale == 0);
  CHECK(report.held_bytes == 0);
}

TEST_CASE("with every replica needed, large variables close range by range to the same bits") {
  constexpr int64_t kFewSteps = 12;
  Hammer hammer(3, 3, PER_REPLICA, kLargeSizes, kFewSteps);
  hammer.Run();
  CHECK_FALSE(hammer.failed());
  CHECK(hammer.Final() == Reference(3, kLargeSizes.size(), kFewSteps));
  CHECK(hammer.shard().Report().accepted == 3 * kFewSteps * kLargeSizes.size());
  CHECK(hammer.shard().Report().held_bytes == 0);
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
