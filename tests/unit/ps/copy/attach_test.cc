// A primary that trains gets a new copy at a random step, over a link that loses, repeats and
// delays messages, with the real sender between two real shards. In the end both have the same
// bits, and those of a shard that never had a copy.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "ps/copy/copy_sender.h"
#include "tests/support/manual_time.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/ps/copy/attach_plans.h"
#include "tests/unit/ps/copy/lossy_link.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using lockstep::test::ForwardingTimer;
using lockstep::test::ManualTime;
using lockstep::test::TemporaryFolder;
using test::Adam;
using test::AllOptimizers;
using test::Harness;
using test::IsTrained;
using test::kCommand;
using test::kDense;
using test::kFrozen;
using test::kMean;
using test::kScalar;
using test::kTable;
using test::kWorkers;
using test::LossyLink;
using test::Message;
using test::PlanWith;
using test::PlanWithIdleSteps;
using test::PlanWithTurns;
using test::Reply;

constexpr int kMaxActions = 100000;
// A part is less than a tensor, a message less than a part.
constexpr StateLimits kSmall{.least_part_bytes = 100, .message_bytes = 36};

class Attachment {
 public:
  Attachment(const CreateVariablesRequest& plan, uint32_t seed, double fault)
      : random_(seed),
        plan_(plan),
        link_(seed, fault),
        alone_(plan_),
        primary_(plan_, {.make_copy_target = [this](const auto& of) { return MakeTarget(of); }}) {}
  ~Attachment() {
    for (const auto& sender : senders_) sender->Close();
  }

  // What the chief does for a new copy, at a new ps.
  void Attach() {
    copy_ = std::make_unique<Harness>();
    View view = test::ViewOf(0);
    view.is_copy = true;
    REQUIRE(copy_->shard.SetView(view).ok());
    CreateVariablesRequest plan = plan_;
    plan.set_awaits_state(true);
    REQUIRE(copy_->shard.CreateVariables(plan).ok());
    link_.Connect(&copy_->shard);
    View primarys = test::ViewOf(kWorkers);
    primarys.copy_address = "copy:1";
    primarys.makes_copy = true;
    REQUIRE(primary_.shard.SetView(primarys).ok());
    CHECK(primary_.shard.GetView().has_copy);
  }
  // The same in the middle of a step.
  void AttachInStep() {
    attaches_ = true;
    Step();
  }
  // The copy dies in the middle of a step, and the chief finds out.
  void LoseCopy() {
    loses_copy_ = true;
    Step();
    CHECK_FALSE(primary_.shard.GetView().has_copy);
    CHECK(copy_ == nullptr);
  }
  bool AwaitsState() { return copy_->shard.GetView().awaits_state; }

  // One step of both, at random; now and then its version is kept, and saved some steps later.
  void Step() {
    const bool keeps = Chance(0.3);
    const GrantArguments arguments{.command = kCommand,
                                   .step = GlobalStep(step_),
                                   .required = kWorkers,
                                   .learning_rate = 0.1f,
                                   .keep_slots = keeps};
    const Reply<ClosedStep> closed_alone = alone_.Grant(arguments);
    const Reply<ClosedStep> closed = primary_.Grant(arguments);
    std::vector<std::pair<uint32_t, uint32_t>> pushes;
    for (uint32_t worker = 0; worker < kWorkers; ++worker) {
      for (const uint32_t variable : {kDense, kScalar, kTable, kMean}) {
        if (IsTrained(plan_, variable, step_)) pushes.emplace_back(worker, variable);
      }
    }
    std::shuffle(pushes.begin(), pushes.end(), random_);
    for (int action = 0; closed.IsParked() || !pushes.empty(); ++action) {
      REQUIRE(action < kMaxActions);  // it must not get stuck
      if (!pushes.empty() && Chance(0.4)) {
        Push(pushes.back().first, pushes.back().second);
        pushes.pop_back();
      } else if (attaches_ && Chance(0.2)) {
        attaches_ = false;
        Attach();
      } else if (loses_copy_ && Chance(0.2)) {
        EndCopy();
      } else if (!link_.Act()) {
        time_.Advance(absl::Milliseconds(1 + Draw(300)));
      }
    }
    if (attaches_) Attach();
    attaches_ = false;
    if (loses_copy_) EndCopy();
    REQUIRE(closed.status().ok());
    REQUIRE_FALSE(closed_alone.IsParked());
    ++step_;
    REQUIRE(primary_.shard.GetView().shard_step == GlobalStep(step_));
    if (keeps) kept_.push_back(step_);
    if (kept_.size() > 2) CompareKept();
  }

  // Of the newest version.
  void CheckSameBits(Harness* one) {
    const auto expected = Saved(&alone_, step_);
    for (const auto& [name, checksum] : Saved(one, step_)) {
      CAPTURE(name);
      CHECK(checksum == expected.at(name));
    }
  }

  // What it shows its primary; it saves nothing.
  void CheckCopysValues() {
    const WorkerIdentity primary{test::kJob, Epoch(1), kPrimaryOfCopy.worker,
                                 kPrimaryOfCopy.incarnation};
    int compared = 0;
    for (const uint32_t variable : {kDense, kScalar, kTable, kMean, kFrozen}) {
      CAPTURE(variable);
      const std::vector<float> expected = alone_.Read(step_, variable);
      if (expected.empty()) continue;  // of another shard
      ++compared;
      const Reply<PullResult> shown;
      copy_->shard.Pull({primary, GlobalStep(step_), {{VariableId(variable)}}}, shown.done());
      REQUIRE_FALSE(shown.IsParked());
      REQUIRE(shown.status().ok());
      CHECK(test::ValuesOf(shown->pieces[0]) == expected);
    }
    REQUIRE(compared > 1);
  }
  // It serves the workers, and all that it saves is compared.
  void PromoteCopy() {
    View view = test::ViewOf(kWorkers);
    view.committed = GlobalStep(step_);
    REQUIRE(copy_->shard.SetView(view).ok());
    CheckSameBits(copy_.get());
  }

  int64_t step() const { return step_; }
  Harness& primary() { return primary_; }
  Harness& copy() { return *copy_; }
  Harness& alone() { return alone_; }

 private:
  std::shared_ptr<CopyTarget> MakeTarget(const CopyTargetOptions& of) {
    CHECK(of.is_new);
    senders_.push_back(std::make_shared<CopySender>(of, MeanMemory(nullptr), link_.MakeTransport(),
                                                    std::make_unique<ForwardingTimer>(&time_),
                                                    &time_, kSmall));
    senders_.back()->SetReady();
    return senders_.back();
  }

  void EndCopy() {
    loses_copy_ = false;
    link_.Connect(nullptr);
    copy_.reset();
    REQUIRE(primary_.shard.SetView(test::ViewOf(kWorkers)).ok());
  }

  // Of one variable: their order is the test's.
  void Push(uint32_t worker, uint32_t variable) {
    std::normal_distribution<float> values;
    const auto draw = [&](size_t count) {
      std::vector<float> drawn(count);
      for (float& value : drawn) value = values(random_);
      return drawn;
    };
    Message message(test::IdentityOf(worker), ++push_seqs_[worker], step_);
    if (variable == kTable) {
      std::vector<int64_t> rows;
      for (int64_t row = 0; row < 9; ++row) {
        if (Chance(0.3)) rows.push_back(row);
      }
      message.Rows(kTable, Shape({9, 3}), rows, draw(rows.size() * 3));
    } else {
      const Shape shape = variable == kDense ? Shape({5, 7}) : Shape({1});
      message.Whole(variable, shape, draw(static_cast<size_t>(shape.num_elements())));
    }
    REQUIRE(alone_.shard.Push(message.Ready()).ok());
    REQUIRE(primary_.shard.Push(message.Ready()).ok());
  }

  // Name and checksum of every tensor.
  static std::map<std::string, uint32_t> Saved(Harness* of, int64_t version) {
    const TemporaryFolder folder(TemporaryFolder::kInMemory);
    const absl::StatusOr<ShardFile> file =
        of->shard.Save(kCommand, GlobalStep(version), folder.path());
    INFO(file.status().ToString());
    REQUIRE(file.ok());
    std::map<std::string, uint32_t> tensors;
    for (const TensorRecord& tensor : file->tensors) tensors[tensor.name] = tensor.crc32c;
    REQUIRE(tensors.size() > 5);
    return tensors;
  }

  void CompareKept() {
    const int64_t version = kept_.front();
    kept_.erase(kept_.begin());
    CHECK(Saved(&primary_, version) == Saved(&alone_, version));
    for (Harness* const one : {&primary_, &alone_}) {
      REQUIRE(one->shard.ReleaseSnapshot(kCommand, GlobalStep(version)).ok());
    }
  }

  size_t Draw(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }
  bool Chance(double probability) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
  }

  std::mt19937 random_;
  const CreateVariablesRequest plan_;
  ManualTime time_;
  LossyLink link_;
  std::vector<std::shared_ptr<CopySender>> senders_;
  Harness alone_;
  Harness primary_;
  std::unique_ptr<Harness> copy_;
  int64_t step_ = 0;
  uint64_t push_seqs_[kWorkers] = {};
  std::vector<int64_t> kept_;
  bool attaches_ = false;    // in the next step
  bool loses_copy_ = false;  // in the next step
};

// Steps until the copy can serve; how many.
int StepsToCopy(Attachment* attachment) {
  int steps = 0;
  for (; attachment->AwaitsState(); ++steps) {
    REQUIRE(steps < 100);
    attachment->Step();
  }
  return steps;
}

TEST_CASE("a new copy has the bits of its primary, whatever the optimizer and the link") {
  uint32_t seed = 0;
  for (const auto& [name, optimizer] : AllOptimizers()) {
    for (const double fault : {0.0, 0.1, 0.3}) {
      CAPTURE(name, fault, ++seed);
      Attachment attachment(PlanWith(optimizer), seed, fault);
      for (uint32_t i = 0; i < seed % 4; ++i) attachment.Step();
      seed % 2 == 0 ? attachment.Attach() : attachment.AttachInStep();
      // The first step of which it gets the means, parts of the state, and one more step.
      CHECK(StepsToCopy(&attachment) > 3);
      for (uint32_t i = 0; i < seed / 3 % 4; ++i) {
        attachment.CheckCopysValues();
        attachment.Step();
      }
      attachment.CheckSameBits(&attachment.primary());
      attachment.PromoteCopy();
    }
  }
}

TEST_CASE("a new copy has the bits of its primary where losses take turns") {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    Attachment attachment(PlanWithTurns(), seed, 0.1);
    for (uint32_t i = 0; i < seed % 4; ++i) attachment.Step();
    seed % 2 == 0 ? attachment.Attach() : attachment.AttachInStep();
    StepsToCopy(&attachment);
    for (uint32_t i = 0; i < seed / 2 % 4; ++i) {
      attachment.CheckCopysValues();
      attachment.CheckSameBits(&attachment.primary());
      attachment.Step();
    }
    attachment.PromoteCopy();
  }
}

TEST_CASE("a copy learns of steps in which no variable of its shard gets gradients") {
  for (uint32_t seed = 1; seed <= 15; ++seed) {
    CAPTURE(seed);
    Attachment attachment(PlanWithIdleSteps(), seed, 0.1);
    for (uint32_t i = 0; i < seed % 5; ++i) attachment.Step();
    seed % 2 == 0 ? attachment.Attach() : attachment.AttachInStep();
    StepsToCopy(&attachment);
    for (uint32_t i = 0; i < seed % 6; ++i) {
      CHECK(attachment.copy().shard.GetView().shard_step == GlobalStep(attachment.step()));
      attachment.CheckCopysValues();
      attachment.CheckSameBits(&attachment.primary());
      attachment.Step();
    }
    attachment.PromoteCopy();
  }
}

TEST_CASE("a copy that dies before it has all leaves its primary alone, which gets another one") {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    Attachment attachment(PlanWith(Adam()), seed, 0.1);
    attachment.Step();
    for (uint32_t attempt = 0; attempt < 2; ++attempt) {
      attachment.Attach();
      for (uint32_t i = 0; i < seed % 5 + attempt; ++i) attachment.Step();
      attachment.LoseCopy();
      attachment.CheckSameBits(&attachment.primary());
      attachment.Step();
    }
    attachment.Attach();
    StepsToCopy(&attachment);
    attachment.PromoteCopy();
  }
}

TEST_CASE("a new copy takes its primary's place, with the versions that workers read") {
  Attachment attachment(PlanWith(Adam()), 3, 0.1);
  attachment.Step();
  attachment.Attach();
  StepsToCopy(&attachment);
  const int64_t step = attachment.step();
  Harness& copy = attachment.copy();
  View view = test::ViewOf(kWorkers);
  view.committed = GlobalStep(step);
  const absl::StatusOr<ShardState> state = copy.shard.SetView(view);
  REQUIRE(state.ok());
  CHECK(state->global_step == GlobalStep(step));
  CHECK(copy.shard.Report().accepted == attachment.primary().shard.Report().accepted);
  for (const uint32_t variable : {kDense, kScalar, kTable, kMean, kFrozen}) {
    for (const int64_t version : {step - 1, step}) {
      CAPTURE(variable, version);
      const std::vector<float> values = copy.Read(version, variable);
      CHECK_FALSE(values.empty());
      CHECK(values == attachment.alone().Read(version, variable));
    }
  }
}

TEST_CASE("a copy that refuses its state is left, and the primary shows what waits") {
  Attachment attachment(PlanWith(Adam()), 1, 0);
  attachment.Attach();
  attachment.Step();
  // It has been told of another epoch, and has no variables of it.
  View view = test::ViewOf(0);
  view.epoch = Epoch(2);
  view.is_copy = true;
  REQUIRE(attachment.copy().shard.SetView(view).ok());
  attachment.Step();
  CHECK_FALSE(attachment.primary().shard.GetView().has_copy);
  attachment.Step();
  attachment.CheckSameBits(&attachment.primary());
  attachment.Attach();
  StepsToCopy(&attachment);
  attachment.PromoteCopy();
}

}  // namespace
}  // namespace lockstep::ps
