// How often the calls of a step acquire the shard's lock. Here stands a Lock() of absl::Mutex in
// place of the library's, which counts; the shard itself knows nothing of it.
#include <atomic>
#include <catch2/catch.hpp>

#include "absl/base/config.h"
#include "absl/synchronization/mutex.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace {

std::atomic<absl::Mutex*> watched = nullptr;
std::atomic<absl::Mutex*> newest = nullptr;
std::atomic<int> acquisitions = 0;

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  newest = this;
  if (this == watched) ++acquisitions;
  LockWhen(Condition::kTrue);
}

ABSL_NAMESPACE_END
}  // namespace absl

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::kCommand;
using test::Message;
using test::PlacementOf;
using test::PlanOf;

constexpr int64_t kLarge = 3 * (int64_t{256} << 10) / sizeof(float);  // three chunks

class LockCounter {
 public:
  explicit LockCounter(const Harness& h) {
    h.shard.GetView();  // acquires that lock and no other
    watched = newest.load();
  }
  ~LockCounter() { watched = nullptr; }

  template <typename Work>
  int CountOf(Work work) {
    acquisitions = 0;
    work();
    return acquisitions;
  }
};

Message Whole(uint32_t worker, int64_t step, const std::vector<int64_t>& sizes) {
  Message message(IdentityOf(worker), static_cast<uint64_t>(step) + 1, step);
  for (uint32_t variable = 0; variable < sizes.size(); ++variable) {
    message.Whole(variable, Shape({sizes[variable]}), std::vector<float>(sizes[variable], 1));
  }
  return message;
}

CreateVariablesRequest Plan(const std::vector<int64_t>& sizes, uint32_t replicas) {
  std::vector<test::SpecText> specs;
  for (const int64_t size : sizes) specs.push_back({absl::StrCat("v", specs.size()), {size}});
  return PlanOf(PlacementOf(specs), replicas, replicas);
}

GrantArguments Committing(int64_t step, uint32_t required) {
  return {.command = kCommand,
          .step = GlobalStep(step),
          .required = required,
          .learning_rate = 1,
          .commit = true};
}

TEST_CASE("a push that closes a step locks three times, one that does not, twice") {
  const std::vector<int64_t> sizes = {4, 100, 1};
  Harness h(Plan(sizes, 2));
  LockCounter locks(h);
  for (int64_t step = 0; step < 3; ++step) {
    const auto closed = h.Grant(Committing(step, 2));
    Message first = Whole(0, step, sizes);
    Message second = Whole(1, step, sizes);
    CHECK(locks.CountOf([&] { CHECK(h.shard.Push(first.Ready()).ok()); }) == 2);
    CHECK(closed.IsParked());
    CHECK(locks.CountOf([&] { CHECK(h.shard.Push(second.Ready()).ok()); }) == 3);
    CHECK(closed.status().ok());
    // The answer is known.
    CHECK(locks.CountOf([&] { CHECK(h.shard.Push(second.Ready()).ok()); }) == 1);
  }
}

TEST_CASE("a push of what lies whole in its worker's memory locks once less") {
  const std::vector<int64_t> sizes = {4, 100, 1};
  Harness h(Plan(sizes, 2));
  LockCounter locks(h);
  const auto memory = std::make_shared<Tensor>(Tensor::Zeros(DType::kFloat32, Shape({256})));
  const auto order_of = [&](uint32_t worker) {
    PushArguments arguments{.worker = IdentityOf(worker), .push_seq = PushSeq(1)};
    ReceivedTensors::Segments values;
    for (uint32_t variable = 0; variable < sizes.size(); ++variable) {
      const uint64_t bytes = sizes[variable] * sizeof(float);
      arguments.pieces.push_back(
          {VariableId(variable), DType::kFloat32, Shape({sizes[variable]}), 0, bytes});
      values.push_back(std::as_const(*memory).view().bytes().first(bytes));
    }
    arguments.tensors = test::Borrowed(values, memory);
    return arguments;
  };
  const auto closed = h.Grant(Committing(0, 2));
  CHECK(locks.CountOf([&] { CHECK(h.shard.Push(order_of(0)).ok()); }) == 1);
  CHECK(closed.IsParked());
  CHECK(locks.CountOf([&] { CHECK(h.shard.Push(order_of(1)).ok()); }) == 2);
  CHECK(closed.status().ok());
}

TEST_CASE("each further group that is published alone locks once more") {
  // Two large variables and, between them, two small ones.
  const std::vector<int64_t> sizes = {kLarge * 2, 4, 5, kLarge * 2};
  Harness h(Plan(sizes, 1));
  LockCounter locks(h);
  const auto closed = h.Grant(Committing(0, 1));
  Message message = Whole(0, 0, sizes);
  CHECK(locks.CountOf([&] { CHECK(h.shard.Push(message.Ready(1 << 20)).ok()); }) == 3 + 2);
  CHECK(closed.status().ok());
}

TEST_CASE("early chunks lock once more, and a step that is kept locks no more") {
  CreateVariablesRequest plan = Plan({kLarge}, 1);
  plan.set_every_replica_counts(true);
  Harness h(plan);
  LockCounter locks(h);
  GrantArguments arguments = Committing(0, 1);
  arguments.keep_values = true;
  const auto closed = h.Grant(arguments);
  const std::vector<float> values(kLarge, 1);
  const uint64_t chunk = kLarge * sizeof(float) / 3;
  for (uint64_t part = 0; part < 3; ++part) {
    Message message(IdentityOf(0), 1, 0);
    message.Chunk(0, Shape({kLarge}), values, part * chunk, chunk);
    CHECK(locks.CountOf([&] { CHECK(h.shard.Push(message.Kept()).ok()); }) == 2 + 1);
  }
  CHECK(closed.status().ok());
}

TEST_CASE("the push of an asynchronous job locks three times") {
  CreateVariablesRequest plan = Plan({4, 5}, 2);
  plan.mutable_optimizer()->mutable_learning_rate()->set_base(1);
  plan.set_replicas_to_aggregate(1);
  plan.set_asynchronous(true);
  Harness h(plan);
  LockCounter locks(h);
  for (int64_t step = 0; step < 3; ++step) {
    Message message = Whole(0, step, {4, 5});
    CHECK(locks.CountOf([&] { CHECK(h.shard.Push(message.Ready()).ok()); }) == 3);
  }
  CHECK(h.shard.GetView().shard_step == GlobalStep(3));
}

TEST_CASE("a pull and a dequeue lock once") {
  Harness h(Plan({4}, 1));
  LockCounter locks(h);
  CHECK(locks.CountOf([&] { CHECK(h.Read(0, 0).size() == 4); }) == 1);
  CHECK(locks.CountOf([&] { CHECK(h.Dequeue(0, 1).IsParked()); }) == 1);
}

}  // namespace
}  // namespace lockstep::ps
