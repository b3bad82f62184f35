// The pure pieces of the door, each alone.
#include <catch2/catch.hpp>
#include <random>

#include "absl/strings/match.h"
#include "common/optimizer_proto/update_rule_of.h"
#include "common/update/byte_ranges.h"
#include "ps/shard/catalog.h"
#include "ps/shard/held_budget.h"
#include "ps/shard/shard_view.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using Hosted = ShardView::Hosted;
using Ranges = ByteRanges::List;

TEST_CASE("a claim returns what was not claimed before") {
  ByteRanges ranges;
  CHECK(ranges.Claim(10, 20) == Ranges{{10, 20}});
  CHECK(ranges.Claim(10, 20).empty());
  CHECK(ranges.Claim(12, 18).empty());
  CHECK(ranges.Claim(5, 12) == Ranges{{5, 10}});
  CHECK(ranges.Claim(30, 40) == Ranges{{30, 40}});
  CHECK(ranges.Claim(0, 50) == Ranges{{0, 5}, {20, 30}, {40, 50}});
  CHECK(ranges.Claim(0, 50).empty());
  CHECK(ranges.Claim(7, 7).empty());
  CHECK(ranges.Claim(50, 51) == Ranges{{50, 51}});
  CHECK(ranges.Claim(60, 70) == Ranges{{60, 70}});
  CHECK(ranges.Covers(0, 51));
  CHECK(ranges.Covers(61, 69));
  CHECK(ranges.Covers(55, 55));
  CHECK_FALSE(ranges.Covers(50, 52));
  CHECK_FALSE(ranges.Covers(40, 65));
  ranges.Clear();
  CHECK_FALSE(ranges.Covers(0, 1));
}

TEST_CASE("random claims cover every byte once") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    ByteRanges ranges;
    std::vector<int> claimed(40);
    for (int i = 0; i < 30; ++i) {
      const uint64_t a = random() % 41;
      const uint64_t b = random() % 41;
      const uint64_t begin = std::min(a, b);
      const uint64_t end = std::max(a, b);
      std::vector<int> expected = claimed;
      for (uint64_t at = begin; at < end; ++at) expected[at] = 1;
      for (const ByteRange& range : ranges.Claim(begin, end)) {
        for (uint64_t at = range.begin; at < range.end; ++at) ++claimed[at];
      }
      REQUIRE(claimed == expected);
    }
  }
}

HeldBudget BudgetOf(std::vector<int64_t> elements, uint64_t floats, uint32_t copies) {
  std::vector<HeldBudget::Kind> kinds;
  for (const int64_t size : elements) {
    kinds.push_back({Shape({size}), static_cast<uint64_t>(size) * 4});
  }
  return HeldBudget(std::move(kinds), floats * 4, copies);
}

TEST_CASE("what needs no buffer counts in the budget like what does") {
  HeldBudget budget = BudgetOf({10}, 20, 2);
  std::optional<Tensor> first = budget.Acquire(0, DType::kFloat32, 0);
  REQUIRE(first.has_value());
  CHECK(budget.Reserve(0, 40));
  CHECK(budget.held_bytes() == 80);
  CHECK_FALSE(budget.Reserve(0, 40));
  budget.Release(0, *std::move(first));
  CHECK(budget.spare_bytes() == 40);
  CHECK(budget.Reserve(0, 40));
  CHECK(budget.spare_bytes() == 0);  // its memory is somebody else's now
  budget.GiveBack(0, 40);
  budget.GiveBack(0, 40);
  CHECK(budget.held_bytes() == 0);
}

TEST_CASE("a budget is given out to the byte and comes back") {
  HeldBudget budget = BudgetOf({10}, 20, 2);
  std::optional<Tensor> first = budget.Acquire(0, DType::kFloat32, 0);
  std::optional<Tensor> second = budget.Acquire(0, DType::kFloat32, 0);
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  CHECK(budget.held_bytes() == 80);
  CHECK_FALSE(budget.Acquire(0, DType::kFloat32, 0).has_value());
  const void* memory = first->data();
  budget.Release(0, *std::move(first));
  CHECK(budget.held_bytes() == 40);
  const std::optional<Tensor> third = budget.Acquire(0, DType::kFloat32, 0);
  REQUIRE(third.has_value());
  CHECK(third->data() == memory);
}

TEST_CASE("narrow gradients take half the budget, beside wide ones") {
  HeldBudget budget = BudgetOf({10}, 20, 2);
  std::vector<Tensor> held;
  for (int i = 0; i < 4; ++i) {
    std::optional<Tensor> buffer = budget.Acquire(0, DType::kBFloat16, 0);
    REQUIRE(buffer.has_value());
    CHECK(buffer->dtype() == DType::kBFloat16);
    CHECK(buffer->num_bytes() == 20);
    held.push_back(*std::move(buffer));
  }
  CHECK(budget.held_bytes() == 80);
  CHECK_FALSE(budget.Acquire(0, DType::kBFloat16, 0).has_value());
  const void* const memory = held.back().data();
  for (int i = 0; i < 2; ++i) {
    budget.Release(0, std::move(held.back()));
    held.pop_back();
  }
  // What was given back is used again for its type, and makes room for another.
  std::optional<Tensor> again = budget.Acquire(0, DType::kBFloat16, 0);
  REQUIRE(again.has_value());
  CHECK(again->data() == memory);
  budget.Release(0, *std::move(again));
  const std::optional<Tensor> wide = budget.Acquire(0, DType::kFloat32, 0);
  REQUIRE(wide.has_value());
  CHECK(wide->num_bytes() == 40);
  CHECK(budget.held_bytes() == 80);
}

TEST_CASE("buffers that are not needed because gradients are read elsewhere are let go") {
  HeldBudget budget = BudgetOf({10}, 20, 2);
  const auto borrowed = [owner = std::make_shared<Tensor>(DType::kFloat32, Shape({10}))] {
    return Tensor::Borrow(DType::kFloat32, Shape({10}), static_cast<std::byte*>(owner->data()),
                          owner);
  };
  std::optional<Tensor> first = budget.Acquire(0, DType::kFloat32, 0);
  std::optional<Tensor> second = budget.Acquire(0, DType::kFloat32, 0);
  budget.Release(0, *std::move(first));
  budget.Release(0, *std::move(second));
  CHECK(budget.spare_bytes() == 80);
  // One worker of two shows its gradients: one buffer is enough.
  for (int step = 0; step < 3; ++step) {
    budget.Borrow(40);
    CHECK(budget.spare_bytes() == 40);
    CHECK(budget.held_bytes() == 0);
    std::optional<Tensor> sent = budget.Acquire(0, DType::kFloat32, 0);
    REQUIRE(sent.has_value());
    CHECK(budget.spare_bytes() == 0);
    budget.Release(0, borrowed());
    budget.Release(0, *std::move(sent));
  }
  budget.Borrow(40);
  budget.Borrow(40);
  CHECK(budget.spare_bytes() == 0);
}

TEST_CASE("a later variable leaves room for the earlier ones that are open") {
  // Variable 2 closes first: pushes go against the placement's order.
  HeldBudget budget = BudgetOf({4, 8, 10}, 24, 2);
  REQUIRE(budget.Acquire(0, DType::kFloat32, 0).has_value());
  CHECK_FALSE(
      budget.Acquire(0, DType::kFloat32, 0).has_value());  // 8 held + 2 * 10 would exceed 24
  CHECK_FALSE(budget.Acquire(1, DType::kFloat32, 0).has_value());
  REQUIRE(budget.Acquire(2, DType::kFloat32, 0).has_value());
  REQUIRE(budget.Acquire(2, DType::kFloat32, 0).has_value());
  CHECK_FALSE(budget.Acquire(2, DType::kFloat32, 0).has_value());
}

TEST_CASE("a variable that has closed makes room for those behind it") {
  HeldBudget budget = BudgetOf({4, 8, 10}, 24, 2);
  std::optional<Tensor> held[2];
  for (auto& buffer : held) buffer = budget.Acquire(2, DType::kFloat32, 0);
  CHECK_FALSE(budget.Acquire(1, DType::kFloat32, 0).has_value());
  budget.Close(2);
  for (auto& buffer : held) budget.Release(2, *std::move(buffer));
  REQUIRE(budget.Acquire(1, DType::kFloat32, 0).has_value());
  REQUIRE(budget.Acquire(0, DType::kFloat32, 0).has_value());
  REQUIRE(budget.Acquire(1, DType::kFloat32, 0).has_value());
  // Variable 2 is in the next step already: it comes after the others.
  CHECK_FALSE(budget.Acquire(2, DType::kFloat32, 0).has_value());
}

TEST_CASE("with the smallest budget every order of arrival ends") {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const uint32_t copies = 1 + random() % 3;
    std::vector<int64_t> sizes(1 + random() % 5);
    int64_t largest = 0;
    for (int64_t& size : sizes) largest = std::max(largest, size = 1 + random() % 9);
    HeldBudget budget = BudgetOf(sizes, copies * largest, copies);
    std::vector<bool> has_closed(sizes.size());
    std::vector<std::vector<Tensor>> held(sizes.size());
    size_t open = sizes.size();
    int idle = 0;
    while (open > 0 && idle < 10000) {
      const size_t variable = random() % sizes.size();
      ++idle;
      if (has_closed[variable]) continue;
      std::optional<Tensor> buffer = budget.Acquire(variable, DType::kFloat32, 0);
      if (!buffer.has_value()) continue;
      held[variable].push_back(*std::move(buffer));
      if (held[variable].size() < copies) continue;
      for (Tensor& tensor : held[variable]) budget.Release(variable, std::move(tensor));
      has_closed[variable] = true;
      budget.Close(variable);
      --open;
      idle = 0;
    }
    REQUIRE(open == 0);
    REQUIRE(budget.held_bytes() == 0);
  }
}

TEST_CASE("admission follows job, term, epoch and incarnation") {
  ShardView admission;
  CHECK(absl::IsFailedPrecondition(admission.CheckCommand(test::CommandOf(7, 1))));
  CHECK(absl::IsFailedPrecondition(
      admission.CheckWorker({7, Epoch(1), WorkerIndex(0), Incarnation(100)})));
  const View view{
      test::CommandOf(7, 3), Epoch(5), {{WorkerIndex(0), Incarnation(100)}}, ShardIndex(2)};
  CHECK(absl::IsInvalidArgument(admission.SetView({}, Hosted::kOnlyHere)));
  REQUIRE(admission.SetView(view, Hosted::kOnlyHere).ok());

  CHECK(admission.CheckCommand(test::CommandOf(7, 3)).ok());
  CHECK(absl::IsAborted(admission.CheckCommand(test::CommandOf(7, 2))));
  CHECK(absl::IsFailedPrecondition(admission.CheckCommand(test::CommandOf(7, 4))));
  CHECK(absl::IsFailedPrecondition(admission.CheckCommand(test::CommandOf(8, 3))));

  const WorkerIdentity worker{7, Epoch(5), WorkerIndex(0), Incarnation(100)};
  CHECK(admission.CheckWorker(worker).ok());
  for (const Epoch epoch : {Epoch(4), Epoch(6)}) {
    WorkerIdentity other = worker;
    other.epoch = epoch;
    const absl::Status status = admission.CheckWorker(other);
    CHECK(absl::IsAborted(status));
    CHECK(absl::StrContains(status.message(), "the shard in epoch 5"));
  }
  WorkerIdentity other = worker;
  other.incarnation = Incarnation(101);
  CHECK(absl::IsAborted(admission.CheckWorker(other)));
  other = worker;
  other.worker = WorkerIndex(1);
  CHECK(absl::IsFailedPrecondition(admission.CheckWorker(other)));
  other = worker;
  other.job = 8;
  CHECK(absl::IsFailedPrecondition(admission.CheckWorker(other)));
}

TEST_CASE("a view is refused whole or taken whole") {
  ShardView admission;
  const View view{
      test::CommandOf(7, 3), Epoch(5), {{WorkerIndex(0), Incarnation(100)}}, ShardIndex(2)};
  REQUIRE(admission.SetView(view, Hosted::kOnlyHere).ok());
  View other = view;
  other.command.set_job(8);
  CHECK(absl::IsFailedPrecondition(admission.SetView(other, Hosted::kOnlyHere)));
  other = view;
  other.command.set_term(2);
  CHECK(absl::IsAborted(admission.SetView(other, Hosted::kOnlyHere)));
  other = view;
  other.epoch = Epoch(4);
  CHECK(absl::IsAborted(admission.SetView(other, Hosted::kOnlyHere)));
  other = view;
  other.shard = ShardIndex(1);
  CHECK(absl::IsFailedPrecondition(admission.SetView(other, Hosted::kOnlyHere)));
  other = view;
  other.command.set_term(4);
  other.members.push_back({WorkerIndex(0), Incarnation(101)});
  CHECK(absl::IsInvalidArgument(admission.SetView(other, Hosted::kOnlyHere)));
  CHECK(admission.term() == Term(3));
  CHECK(admission.IsMember(WorkerIndex(0), Incarnation(100)));
  // The last one wins.
  other = view;
  other.command.set_term(4);
  other.members = {{WorkerIndex(1), Incarnation(200)}};
  REQUIRE(admission.SetView(other, Hosted::kOnlyHere).ok());
  CHECK_FALSE(admission.IsMember(WorkerIndex(0), Incarnation(100)));
  CHECK(admission.IsMember(WorkerIndex(1), Incarnation(200)));
}

TEST_CASE("a term belongs to the chief that set its first view") {
  ShardView admission;
  View first{test::CommandOf(7, 3), Epoch(5), {{WorkerIndex(0), Incarnation(100)}}, ShardIndex(2)};
  first.command.set_chief(11);
  View second = first;
  second.command.set_chief(22);
  second.members.clear();
  REQUIRE(admission.SetView(first, Hosted::kOnlyHere).ok());
  CHECK(admission.SetView(first, Hosted::kOnlyHere).ok());
  const absl::Status refused = admission.SetView(second, Hosted::kOnlyHere);
  CHECK(absl::IsAborted(refused));
  CHECK(refused.message() == "term 3 belongs to another chief");
  CHECK(absl::IsAborted(admission.CheckCommand(second.command)));
  CHECK(admission.CheckCommand(first.command).ok());
  CHECK(admission.IsMember(WorkerIndex(0)));
  second.command.set_term(4);
  REQUIRE(admission.SetView(second, Hosted::kOnlyHere).ok());
  CHECK(absl::IsAborted(admission.CheckCommand(first.command)));
  first.command.set_term(4);
  CHECK(absl::IsAborted(admission.SetView(first, Hosted::kOnlyHere)));
}

TEST_CASE("an older view of a term changes nothing") {
  ShardView admission;
  View view{test::CommandOf(7, 3), Epoch(5), {{WorkerIndex(0), Incarnation(100)}}, ShardIndex(2)};
  view.number = 2;
  REQUIRE(admission.SetView(view, Hosted::kOnlyHere).ok());
  View older = view;
  older.number = 1;
  older.members = {{WorkerIndex(1), Incarnation(200)}};
  const absl::Status refused = admission.SetView(older, Hosted::kOnlyHere);
  CHECK(absl::IsAborted(refused));
  CHECK(refused.message() == "view 1 of term 3 is over: the shard has view 2");
  CHECK(admission.IsMember(WorkerIndex(0)));
  CHECK_FALSE(admission.IsMember(WorkerIndex(1)));
  // Each term counts anew.
  older.command.set_term(4);
  REQUIRE(admission.SetView(older, Hosted::kOnlyHere).ok());
  CHECK(admission.IsMember(WorkerIndex(1)));
}

TEST_CASE("a catalog takes its shard's part of a placement") {
  Placement placement = test::PlacementOf({{"a", {2}, 0}, {"b", {3}, 1}, {"c", {}, 0}}, 2);
  const auto catalog = Catalog::Create(placement, ShardIndex(0));
  REQUIRE(catalog.ok());
  REQUIRE(catalog->size() == 2);
  CHECK((*catalog)[1].name == "c");
  CHECK((*catalog)[1].id == VariableId(2));
  CHECK(catalog->num_bytes() == 12);
}

TEST_CASE("a placement that cannot be hosted is refused, naming the variable") {
  struct Case {
    const char* what;
    std::function<void(Placement*)> spoil;
  };
  const Case cases[] = {
      {"expected id 1", [](Placement* p) { p->mutable_variables(1)->set_id(7); }},
      {"a name of its own", [](Placement* p) { p->mutable_variables(1)->set_name("a"); }},
      {"a name of its own", [](Placement* p) { p->mutable_variables(1)->set_name(""); }},
      {"shard 2 of 2", [](Placement* p) { p->mutable_variables(1)->set_shard(2); }},
      {"got int64", [](Placement* p) { p->mutable_variables(1)->set_dtype(INT64); }},
      {"got float16", [](Placement* p) { p->mutable_variables(1)->set_dtype(FLOAT16); }},
      {"", [](Placement* p) { p->mutable_variables(1)->set_dtype(DATA_TYPE_UNSPECIFIED); }},
      {"", [](Placement* p) { p->mutable_variables(1)->set_dims(0, -3); }},
      {"0 shards", [](Placement* p) { p->set_shards(0); }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    Placement placement = test::PlacementOf({{"a", {2}, 0}, {"b", {3}, 1}}, 2);
    c.spoil(&placement);
    const absl::Status status = Catalog::Create(placement, ShardIndex(0)).status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(), c.what));
  }
}

TEST_CASE("an optimizer without a kind is refused and unset numbers have their defaults") {
  OptimizerDef optimizer;
  CHECK(absl::IsInvalidArgument(UpdateRuleOf(optimizer).status()));
  optimizer.mutable_adam();
  const auto adam = UpdateRuleOf(optimizer);
  REQUIRE(adam.ok());
  CHECK((*adam)->scalars()[0].initial_value == 0.9f);
  CHECK((*adam)->scalars()[1].initial_value == 0.999f);
}

TEST_CASE("room is left for the largest sparse gradient seen, and the earliest may exceed it") {
  // Variable 1 is sparse and the earliest.
  std::vector<HeldBudget::Kind> kinds = {{Shape({10}), 40}, {.is_sparse = true}};
  HeldBudget budget(std::move(kinds), 100, 2);
  std::optional<Tensor> dense = budget.Acquire(0, DType::kFloat32, 0);
  REQUIRE(dense.has_value());
  // Nothing was known of variable 1, so variable 0 took its room; now it is known.
  std::optional<Tensor> first = budget.Acquire(1, DType::kFloat32, 80);
  REQUIRE(first.has_value());
  CHECK(first->num_bytes() == 80);
  CHECK(budget.held_bytes() == 120);
  CHECK(budget.Acquire(1, DType::kFloat32, 80).has_value());
  CHECK_FALSE(budget.Acquire(1, DType::kFloat32, 80).has_value());  // beyond its copies
  CHECK_FALSE(budget.Acquire(0, DType::kFloat32, 0).has_value());
  budget.Release(0, *std::move(dense));
  budget.Release(1, *std::move(first));
  CHECK(budget.held_bytes() == 80);
  CHECK_FALSE(budget.Acquire(0, DType::kFloat32, 0).has_value());  // 2 * 80 are reserved
  CHECK(budget.Acquire(1, DType::kFloat32, 8).has_value());
}

}  // namespace
}  // namespace lockstep::ps
