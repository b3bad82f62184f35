// Over parameter servers in this process.
#include "worker/cache/variable_cache.h"

#include <catch2/catch.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "tests/support/placed_variable.h"
#include "tests/support/thread_timer.h"
#include "tests/unit/worker/support/counting_ps.h"
#include "tests/unit/worker/support/fetched_variables.h"
#include "tests/unit/worker/support/ps_cluster.h"
#include "worker/strategy/parameter_server/shard_group.h"

namespace lockstep::worker {
namespace {

using Rows = std::vector<std::vector<int64_t>>;

constexpr int64_t kTableRows = 10;
constexpr int64_t kSteps = 5;
constexpr int kBackward[] = {2, 1, 0};  // the order in which gradients become final

// A table of 10 rows of two in parts of 4, 4 and 2 on ps 0, 1 and 0; a dense variable of 5 elements
// in parts of 3 and 2 on ps 1 and 0; a statistic on ps 0.
Placement SplitPlacement() {
  Placement placement;
  placement.set_shards(2);
  const auto add = [&](const std::string& of, int64_t first, int64_t rows, int64_t all,
                       uint32_t shard) {
    VariableSpec* spec = placement.add_variables();
    const auto id = static_cast<uint32_t>(placement.variables_size() - 1);
    *spec = PlacedVariable(id, of + "#" + std::to_string(first), rows, shard, true, 0);
    spec->mutable_part()->set_of(of);
    spec->mutable_part()->set_first_row(first);
    spec->mutable_part()->set_num_rows(all);
    spec->mutable_initializer()->mutable_truncated_normal();
    return spec;
  };
  for (const auto& [first, rows, shard] : {std::tuple{0, 4, 0u}, {4, 4, 1u}, {8, 2, 0u}}) {
    VariableSpec* spec = add("table", first, rows, kTableRows, shard);
    spec->add_dims(2);
    spec->set_sparse(true);
  }
  add("dense", 0, 3, 5, 1);
  add("dense", 3, 2, 5, 0);
  *placement.add_variables() = PlacedVariable(5, "mean", 1, 0, false, 7);
  return placement;
}

// The same variables, not split, on one ps.
Placement WholePlacement() {
  Placement placement;
  placement.set_shards(1);
  *placement.add_variables() = PlacedVariable(0, "table", kTableRows, 0, true, 0);
  placement.mutable_variables(0)->add_dims(2);
  placement.mutable_variables(0)->set_sparse(true);
  *placement.add_variables() = PlacedVariable(1, "dense", 5, 0, true, 0);
  for (int i : {0, 1}) {
    placement.mutable_variables(i)->mutable_initializer()->mutable_truncated_normal();
  }
  *placement.add_variables() = PlacedVariable(2, "mean", 1, 0, false, 7);
  return placement;
}

struct Fixture {
  explicit Fixture(const Placement& placement, bool asynchronous = false)
      : cluster({.placement = placement,
                 .optimizer = Sgd(),
                 .asynchronous = asynchronous,
                 .end = kSteps}),
        layout(*VariableLayout::Create(placement)),
        shards(cluster.data()),
        group(*ShardGroup::Create(GroupOptions(asynchronous), layout,
                                  {.shards = shards.pointers(), .timer = &timer})),
        cache(&group->cache()) {}

  static OptimizerDef Sgd() {
    OptimizerDef optimizer;
    optimizer.mutable_sgd();
    optimizer.mutable_learning_rate()->set_base(1);
    return optimizer;
  }
  ShardGroupOptions GroupOptions(bool asynchronous) const {
    ShardGroupOptions options;
    options.session.identity = cluster.Identity(0);
    options.session.asynchronous = asynchronous;
    return options;
  }
  // The rows of the table, for the cache.
  std::vector<std::span<const int64_t>> Named(const std::vector<int64_t>& rows) const {
    return {rows, {}, {}};
  }
  std::vector<float> Values(size_t variable) const {
    const std::span<const float> values = cache->views()[variable].as<float>();
    return {values.begin(), values.end()};
  }
  GlobalStep Fetch(int64_t version, const std::vector<int64_t>& rows) {
    const std::vector<std::span<const int64_t>> named = Named(rows);
    const auto got = Await<GlobalStep>([&](Callback<GlobalStep> done) {
      cache->Fetch(GlobalStep(version), named, std::move(done));
    });
    REQUIRE(got.ok());
    return *got;
  }
  absl::Status FetchNewest(const std::vector<int64_t>& rows) {
    const std::vector<std::span<const int64_t>> named = Named(rows);
    return Await<GlobalStep>(
               [&](Callback<GlobalStep> done) { cache->FetchNewest(named, std::move(done)); })
        .status();
  }
  // One step: `by` from the rows of the table that were fetched and from the dense variable.
  void Push(uint64_t seq, int64_t stamp, float by) {
    const std::vector<GlobalStep> stamps(shards.pointers().size(), GlobalStep(stamp));
    std::vector<float> rows(cache->views()[0].num_elements(), by), dense(5, by), mean = {9};
    const MutableTensorView gradients[] = {{DType::kFloat32, cache->views()[0].shape, rows.data()},
                                           {DType::kFloat32, Shape({5}), dense.data()},
                                           {DType::kFloat32, Shape({1}), mean.data()}};
    group->Begin(PushSeq(seq), stamps[0], stamps);
    group->Add(kBackward, gradients);
    REQUIRE(End().ok());
  }
  absl::Status End() {
    return Await<std::span<const PushSummary>>([&](Callback<std::span<const PushSummary>> done) {
             group->End(DequeueSeq(), std::move(done));
           })
        .status();
  }

  test::PsCluster cluster;
  VariableLayout layout;
  test::CountingPs shards;
  ThreadTimer timer;
  std::unique_ptr<ShardGroup> group;
  VariableCache* cache;
};

TEST_CASE("rows and dense variables are the same however they are split") {
  Fixture whole(WholePlacement()), split(SplitPlacement());
  for (Fixture* f : {&whole, &split}) f->cluster.RunSteps();
  for (int64_t step = 0; step < kSteps; ++step) {
    for (const std::vector<int64_t>& rows : Rows{{0, 3, 4, 7, 8, 9}, {5}, {}, {2, 9}}) {
      for (Fixture* f : {&whole, &split}) CHECK(f->Fetch(step, rows) == GlobalStep(step));
      CHECK(whole.Values(0).size() == 2 * rows.size());
      for (size_t variable : {0, 1, 2}) CHECK(whole.Values(variable) == split.Values(variable));
    }
    for (Fixture* f : {&whole, &split}) {
      f->Fetch(step, {1, 4, 9});
      f->Push(static_cast<uint64_t>(step) + 1, step, 0.5f);
    }
  }
  // And what was pushed has arrived in its rows.
  whole.Fetch(kSteps, {0, 1, 4, 9});
  const std::vector<float> after = whole.Values(0);
  Fixture fresh(WholePlacement());
  fresh.Fetch(0, {0, 1, 4, 9});
  for (size_t i = 0; i < after.size(); ++i) {
    CHECK(after[i] == Approx(fresh.Values(0)[i] - (i < 2 ? 0 : 2.5)).margin(1e-6));
  }
  CHECK(whole.Values(2) == std::vector<float>{9});
}

TEST_CASE("what is dense is fetched once per version, rows each time") {
  Fixture f(SplitPlacement());
  f.Fetch(0, {0});
  const int64_t with_dense = f.shards.pulled_bytes();
  f.Fetch(0, {1, 8});
  CHECK(f.shards.pulled_bytes() == with_dense + 16);
  CHECK(with_dense == 8 + 20 + 4);
  const int64_t requests = f.shards.pulls();
  f.Fetch(0, {});
  CHECK(f.shards.pulls() == requests);
  CHECK(f.Values(2) == std::vector<float>{7});
}

TEST_CASE("what is dense comes ahead, as soon as its version exists") {
  Fixture f(SplitPlacement());
  f.cluster.RunSteps();
  f.Fetch(0, {0, 9});
  f.cache->FetchAhead(GlobalStep(1));
  f.Push(1, 0, 1);
  CHECK(f.Fetch(1, {}) == GlobalStep(1));
  CHECK(f.Values(2) == std::vector<float>{9});
  const std::vector<float> ahead = f.Values(1);
  const int64_t pulled = f.shards.pulled_bytes();
  CHECK(f.Fetch(1, {3}) == GlobalStep(1));
  CHECK(f.shards.pulled_bytes() == pulled + 8);
  CHECK(f.Values(1) == ahead);
  // Of a replica that was late: two steps were made without it.
  f.cache->FetchAhead(GlobalStep(2));
  for (int64_t step = 1; step < 3; ++step) f.Push(static_cast<uint64_t>(step) + 1, step, 1);
  CHECK(f.Fetch(3, {3}) == GlobalStep(3));
  for (size_t i = 0; i < ahead.size(); ++i) CHECK(f.Values(1)[i] == Approx(ahead[i] - 2));
}

TEST_CASE("rows of the next step come ahead with what is dense, while this step's are pushed") {
  Fixture f(SplitPlacement());
  f.cluster.RunSteps();
  f.Fetch(0, {0, 4, 9});
  const std::vector<float> before = f.Values(0);
  const std::vector<int64_t> next = {3, 4, 8, 9};
  std::vector<float> gradient(6, 1), dense(5, 1), mean = {9};
  const MutableTensorView gradients[] = {{DType::kFloat32, Shape({3, 2}), gradient.data()},
                                         {DType::kFloat32, Shape({5}), dense.data()},
                                         {DType::kFloat32, Shape({1}), mean.data()}};
  f.group->Begin(PushSeq(1), GlobalStep(0),
                 std::vector<GlobalStep>(f.shards.pointers().size(), GlobalStep(0)));
  f.cache->FetchAhead(GlobalStep(1), f.Named(next));
  // The rows lie in their parts as before.
  f.group->Add(kBackward, gradients);
  REQUIRE(f.End().ok());
  CHECK(f.Fetch(1, next) == GlobalStep(1));
  CHECK(f.Values(0).size() == 8);
  for (int i = 0; i < 2; ++i) {
    CHECK(f.Values(0)[2 + i] == before[2 + i] - 1);  // row 4
    CHECK(f.Values(0)[6 + i] == before[4 + i] - 1);  // row 9
  }
  CHECK(f.Values(2) == std::vector<float>{9});
  // All of it was there.
  const int64_t pulls = f.shards.pulls();
  f.Push(2, 1, 1);
  f.cache->FetchAhead(GlobalStep(2), f.Named(next));
  f.Fetch(2, next);
  CHECK(f.shards.pulls() - pulls == static_cast<int64_t>(f.shards.pointers().size()));
}

// Of a replica that was late: its next step is not the one that it had expected.
TEST_CASE("rows that came ahead for a step are not taken for those of the step that came instead") {
  Fixture f(SplitPlacement()), fresh(SplitPlacement());
  for (Fixture* of : {&f, &fresh}) {
    of->cluster.RunSteps();
    of->Fetch(0, {0, 4, 9});
    for (int64_t step = 0; step < 3; ++step) of->Push(static_cast<uint64_t>(step) + 1, step, 1);
  }
  const std::vector<int64_t> expected = {1, 5, 8}, wanted = {0, 4, 9};
  f.cache->FetchAhead(GlobalStep(1), f.Named(expected));
  CHECK(f.Fetch(3, wanted) == GlobalStep(3));
  fresh.Fetch(3, wanted);
  for (size_t variable : {0, 1, 2}) CHECK(f.Values(variable) == fresh.Values(variable));
  // Gradients go to these rows of the parts.
  for (const auto& [part, row] : {std::pair{0, 0}, {1, 0}, {2, 1}}) {
    CHECK(f.cache->part_rows(0).of_part(part).indices.front() == row);
  }
}

TEST_CASE("values that nobody waits for any more do not hold up the end") {
  Fixture f(SplitPlacement());
  f.cluster.RunSteps();
  f.Fetch(0, {0});
  f.cache->FetchAhead(GlobalStep(1));
  f.Push(1, 0, 1);
  f.group.reset();
  CHECK(f.shards.pulls() > 0);
}

TEST_CASE("a version that is kept no longer is told") {
  Fixture f(SplitPlacement());
  f.cluster.RunSteps();
  for (int64_t step = 0; step < 3; ++step) {
    f.Fetch(step, {0});
    f.Push(static_cast<uint64_t>(step) + 1, step, 1);
  }
  CHECK(f.Fetch(0, {4}) == GlobalStep(3));
  // What came then has not version 0.
  CHECK(f.Fetch(3, {4}) == GlobalStep(3));
  CHECK(f.Values(2) == std::vector<float>{9});
}

TEST_CASE("the newest values come with the version of each shard") {
  Fixture f(SplitPlacement(), /*asynchronous=*/true);
  const std::vector<int64_t> rows = {0, 5};
  REQUIRE(f.FetchNewest(rows).ok());
  CHECK(f.cache->version_of(0) == GlobalStep(0));
  f.Push(1, 0, 1);
  f.Push(2, 0, 1);
  REQUIRE(f.FetchNewest(rows).ok());
  CHECK(f.cache->version_of(0) == GlobalStep(2));
  CHECK(f.cache->version_of(1) == GlobalStep(2));
}

TEST_CASE("the newest version is told of a shard of which no row is wanted, too") {
  Placement placement;
  placement.set_shards(2);
  *placement.add_variables() = PlacedVariable(0, "table", kTableRows, 1, true, 0);
  placement.mutable_variables(0)->add_dims(2);
  placement.mutable_variables(0)->set_sparse(true);
  *placement.add_variables() = PlacedVariable(1, "dense", 5, 0, true, 0);
  *placement.add_variables() = PlacedVariable(2, "mean", 1, 0, false, 7);
  Fixture f(placement, /*asynchronous=*/true);
  for (int64_t step = 0; step < 3; ++step) {
    REQUIRE(f.FetchNewest({}).ok());
    CHECK(f.cache->version_of(0) == GlobalStep(step));
    CHECK(f.cache->version_of(1) == GlobalStep(step));
    CHECK(f.Values(0).empty());
    f.Push(static_cast<uint64_t>(step) + 1, step, 1);
  }
}

TEST_CASE("memory for the rows that a step names at most is made with the cache") {
  Fixture f(SplitPlacement());
  ShardGroupOptions options = f.GroupOptions(false);
  options.most_rows = {7, 0, 0};
  int made = 0;
  const TensorMaker make = [&made](DType dtype, const Shape& shape) {
    ++made;
    return Tensor(dtype, shape);
  };
  const auto group = *ShardGroup::Create(
      options, f.layout, {.shards = f.shards.pointers(), .timer = &f.timer, .make_tensor = make});
  f.cache = &group->cache();
  const int at_start = made;
  CHECK(f.Values(0).empty());
  for (const std::vector<int64_t>& rows : Rows{{3}, {0, 3, 4, 7, 8, 9}, {1, 2, 3, 4, 5, 6, 9}}) {
    CHECK(f.Fetch(0, rows) == GlobalStep(0));
    CHECK(f.Values(0).size() == 2 * rows.size());
  }
  CHECK(made == at_start);
  f.cache = &f.group->cache();
}

TEST_CASE("a layout for other ps is refused") {
  Fixture f(SplitPlacement());
  const absl::Status status =
      ShardGroup::Create(f.GroupOptions(false), f.layout,
                         {.shards = f.cluster.transports().first(1), .timer = &f.timer})
          .status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(absl::StrContains(status.message(), "2 ps, but there are 1"));
}

TEST_CASE("an error of a shard is the fetch's") {
  Fixture f(SplitPlacement());
  WorkerIdentity stranger = f.cluster.Identity(0);
  stranger.set_incarnation(1);
  test::FetchedVariables variables(f.layout, f.cluster.transports(), stranger,
                                   /*asynchronous=*/false);
  CHECK(absl::IsAborted(variables.Fetch(GlobalStep(0), f.Named({})).status()));
}

}  // namespace
}  // namespace lockstep::worker
