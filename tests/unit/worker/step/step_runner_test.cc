// Replicas of a job with a table, training over parameter servers in this process.
#include "worker/step/step_runner.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/checkpoint/checkpoint.h"
#include "common/tensor/half_copy.h"
#include "tests/unit/worker/step/click_job.h"
#include "worker/evaluate/trained_model.h"

namespace lockstep::worker {
namespace {

using test::ClickJob;
using test::ClickJobOptions;

struct Trained {
  std::vector<float> losses;
  std::vector<float> table;
  std::vector<float> kernel;
};

Trained TrainedBy(const ClickJobOptions& options) {
  ClickJob job(options);
  for (const absl::Status& end : job.Train()) {
    INFO(end);
    CHECK(end.ok());
  }
  CHECK(job.losses().size() == static_cast<size_t>(options.end - options.start));
  return {job.losses(), job.Values("table/table"), job.Values("hidden/kernel")};
}

void CheckSameBits(const Trained& a, const Trained& b) {
  CHECK(a.losses == b.losses);
  CHECK(a.table == b.table);
  CHECK(a.kernel == b.kernel);
}

TEST_CASE("a table trains to the same bits on one ps or three, whole or in parts") {
  for (const char* optimizer :
       {"adam {} learning_rate { base: 0.05 }",
        "momentum { momentum: 0.9 } learning_rate { base: 0.1 } clipping { global_norm: 0.5 }"}) {
    CAPTURE(optimizer);
    const Trained one = TrainedBy({.optimizer = optimizer, .workers = 2});
    CHECK(one.losses.back() < one.losses.front());
    CheckSameBits(one, TrainedBy({.optimizer = optimizer, .ps = 3, .workers = 2}));
    CheckSameBits(one, TrainedBy({.optimizer = optimizer, .workers = 2, .max_part_bytes = 64}));
    CheckSameBits(one,
                  TrainedBy({.optimizer = optimizer, .ps = 3, .workers = 2, .max_part_bytes = 64}));
  }
}

TEST_CASE("values that come while the gradient still leaves train to the same bits") {
  const Trained one = TrainedBy({.workers = 2});
  CheckSameBits(one, TrainedBy({.workers = 2, .fetch_ahead = true}));
  CheckSameBits(one, TrainedBy({.ps = 3, .workers = 2, .max_part_bytes = 64, .fetch_ahead = true}));
}

// Without a table all of a gradient is one message.
constexpr char kDenseModel[] = R"(
  input_shape: [3]
  layers { name: "hidden" dense { units: 6 } }
  layers { name: "relu" relu {} }
  layers { name: "scores" dense { units: 2 } }
  layers { name: "loss" softmax_cross_entropy {} })";

TEST_CASE("a small step is one call of each replica to each ps, and trains to the same bits") {
  std::vector<float> losses;
  for (const uint32_t ps : {1, 2}) {
    for (const bool fetch_ahead : {false, true}) {
      ClickJob job({.model = kDenseModel, .ps = ps, .workers = 2, .fetch_ahead = fetch_ahead});
      for (const absl::Status& end : job.Train()) CHECK(end.ok());
      // Alone: the gradient, the values, and of ps 0 the token. The first values come alone always.
      const int64_t calls = 2 * (fetch_ahead ? 10 * ps + ps : 10 * (2 * ps + 1));
      CHECK(job.shards().calls() == calls);
      CHECK(job.report(0).accepted == 5 * 10);
      if (losses.empty()) losses = job.losses();
      CHECK(job.losses() == losses);
    }
  }
}

TEST_CASE("a worker gives up a ps that takes no gradient for as long as its patience lasts") {
  for (const char* model : {test::kClickModel, kDenseModel}) {
    ClickJob job({.model = model, .patience = absl::ZeroDuration()});
    job.shards().LosePushes();
    CHECK(absl::IsUnavailable(job.Train().front()));
  }
}

TEST_CASE("half the width on the way trains alike, to the same bits on one ps or three") {
  const Trained wide = TrainedBy({.workers = 2});
  for (const DType type : {DType::kBFloat16, DType::kFloat16}) {
    CAPTURE(Name(type));
    const Trained one = TrainedBy({.workers = 2, .wire_type = type});
    for (size_t i = 0; i < wide.losses.size(); ++i) {
      CHECK(one.losses[i] == Approx(wide.losses[i]).epsilon(0.02));
    }
    CHECK(one.kernel != wide.kernel);
    // The values themselves have not been rounded.
    CHECK(std::ranges::any_of(one.kernel, [type](float value) {
      uint16_t narrow = 0;
      float rounded = 0;
      Narrow({&value, 1}, type, &narrow);
      Widen(type, &narrow, {&rounded, 1});
      return rounded != value;
    }));
    CheckSameBits(one, TrainedBy({.workers = 2, .fetch_ahead = true, .wire_type = type}));
    CheckSameBits(
        one,
        TrainedBy(
            {.ps = 3, .workers = 2, .max_part_bytes = 64, .fetch_ahead = true, .wire_type = type}));
  }
}

TEST_CASE("a checkpoint of parts goes on to the same bits in other parts on other ps") {
  const ClickJobOptions options{
      .optimizer = "adam {} learning_rate { base: 0.05 } variable_averages { decay: 0.5 }",
      .end = 8};
  const Trained unbroken = TrainedBy(options);
  for (const int64_t saved_parts : {1 << 30, 100, 64}) {
    ClickJobOptions first = options;
    first.ps = 2;
    first.max_part_bytes = saved_parts;
    first.end = 5;
    ClickJob saved(first);
    for (const absl::Status& end : saved.Train()) REQUIRE(end.ok());
    const std::string folder = saved.Save();
    for (const int64_t parts : {1 << 30, 100, 48}) {
      CAPTURE(saved_parts, parts);
      ClickJobOptions rest = options;
      rest.ps = 3;
      rest.max_part_bytes = parts;
      rest.restore_from = folder;
      rest.start = first.end;
      const Trained gone_on = TrainedBy(rest);
      CHECK(gone_on.losses ==
            std::vector<float>(unbroken.losses.begin() + first.end, unbroken.losses.end()));
      CHECK(gone_on.table == unbroken.table);
      CHECK(gone_on.kernel == unbroken.kernel);
    }
    // And whoever uses the model finds it whole.
    const auto reader = CheckpointReader::Open(folder);
    REQUIRE(reader.ok());
    const auto loaded = LoadVariables(*reader, saved.graph());
    REQUIRE(loaded.ok());
    const std::span<const float> table = (*loaded)[0].as<float>();
    CHECK(std::vector<float>(table.begin(), table.end()) == saved.Values("table/table"));
    const auto averages = LoadVariables(*reader, saved.graph(), /*averages=*/true);
    REQUIRE(averages.ok());
    const std::span<const float> average = (*averages)[0].as<float>();
    CHECK(std::vector<float>(average.begin(), average.end()) !=
          std::vector<float>(table.begin(), table.end()));
  }
}

TEST_CASE("towers of a worker share the rows that any of their batches names") {
  const Trained one = TrainedBy({.towers = 2, .batch = 4});
  CheckSameBits(one, TrainedBy({.ps = 2, .towers = 2, .batch = 4, .max_part_bytes = 64}));
  // The mean over towers is that over the batch, but for the order of sums.
  const Trained whole = TrainedBy({.towers = 1, .batch = 8});
  for (size_t i = 0; i < one.losses.size(); ++i) {
    CHECK(one.losses[i] == Approx(whole.losses[i]).epsilon(1e-4));
  }
}

TEST_CASE("a timeline tells of every step, its phases in their order") {
  for (const bool asynchronous : {false, true}) {
    ClickJob job({.workers = 2, .asynchronous = asynchronous, .timeline = true});
    for (const absl::Status& end : job.Train()) CHECK(end.ok());
    for (uint32_t worker : {0, 1}) {
      const std::string text = job.timeline(worker);
      const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
      // In an asynchronous job a replica's share is what it gets done.
      CHECK((asynchronous || lines.size() == 1 + 10));
      int64_t now = 0;
      for (size_t i = 1; i < lines.size(); ++i) {
        std::vector<int64_t> numbers;
        for (absl::string_view field : absl::StrSplit(lines[i], ',')) {
          CHECK(absl::SimpleAtoi(field, &numbers.emplace_back()));
        }
        REQUIRE(numbers.size() == 6);
        CHECK(numbers[0] == static_cast<int64_t>(i) - 1);
        numbers[0] = now;
        CHECK(std::is_sorted(numbers.begin(), numbers.end()));
        now = numbers.back();
      }
    }
  }
}

// Of a job whose steps are all done.
class DoneStrategy final : public UpdateStrategy {
 public:
  void BeginStep(const StepInput& input, Callback<StepValues> done) override {
    done(StepValues{.version = input.step, .is_superseded = true});
  }
  void AddGradients(std::span<const int>) override { FAIL("a gradient"); }
  void EndStep(const std::optional<StepInput>&, Callback<StepOutcome> done) override {
    done(StepOutcome{.done = true});
  }
  std::optional<GlobalStep> PredictNext() const override { return std::nullopt; }
  std::string DescribeWait() const override { return ""; }
  void Cancel() override {}
};

// Data for steps 0 to 4.
class FiveSteps final : public Pipeline {
 public:
  absl::StatusOr<const std::vector<Batch>*> BatchesFor(GlobalStep step) override {
    return absl::InvalidArgumentError(absl::StrCat("step ", step.value()));
  }
  bool IsReady(GlobalStep) const override { return false; }
  int64_t num_examples() const override { return 1; }
  int64_t last_step() const override { return 4; }
};

TEST_CASE("a worker that starts after the last step reads no data for it and is done") {
  const ClickJob job({});
  DoneStrategy strategy;
  FiveSteps data;
  BatchRows rows(job.graph());
  Progress progress;
  const auto run = [&](int64_t max_steps) {
    return StepRunner({.first_step = GlobalStep(5), .max_steps = max_steps}, job.layout(),
                      &strategy, {nullptr}, &data, &rows, &progress)
        .Run();
  };
  CHECK(run(5).ok());
  CHECK(absl::IsInvalidArgument(run(6)));
}

TEST_CASE("a step moves no more bytes than its rows weigh, however large the table is") {
  constexpr char kHuge[] = R"(
    input_shape: [3]
    layers { name: "ids" inputs: "input" columns { first: 0 count: 2 } }
    layers { name: "table" inputs: "ids" embedding { rows: 1000000 dim: 64 initializer { zeros {} } } }
    layers { name: "scores" dense { units: 2 } }
    layers { name: "loss" softmax_cross_entropy {} })";
  // 256 MB, in 16 parts on two ps.
  const auto bytes = [&](int64_t batch, int64_t* headers) {
    ClickJobOptions options{.model = kHuge, .optimizer = "sgd {} learning_rate { base: 0.1 }"};
    options.ps = 2;
    options.batch = batch;
    options.end = 2;
    options.max_part_bytes = 16 << 20;
    ClickJob job(options);
    CHECK(job.layout().variables()[0].parts.size() == 16);
    for (const absl::Status& end : job.Train()) CHECK(end.ok());
    CHECK(job.shards().pushed_bytes() > 0);
    *headers = job.shards().header_bytes() / options.end;
    return std::pair(job.shards().pulled_bytes() / options.end,
                     job.shards().pushed_bytes() / options.end);
  };
  constexpr int64_t kRow = 64 * 4, kDense = (2 * 64 * 2 + 2) * 4 + 4;
  int64_t few_headers = 0, many_headers = 0;
  const auto [few_pulled, few_pushed] = bytes(4, &few_headers);
  const auto [many_pulled, many_pushed] = bytes(16, &many_headers);
  // At most two rows for each example; at least half of that, since few are named twice.
  CHECK(few_pulled <= 4 * 2 * kRow + kDense);
  CHECK(few_pulled >= 4 * kRow + kDense);
  CHECK(few_pushed <= 4 * 2 * (kRow + 8) + kDense);
  CHECK(many_pulled <= 16 * 2 * kRow + kDense);
  CHECK(many_pulled >= 16 * kRow + kDense);
  CHECK(many_pushed <= 16 * 2 * (kRow + 8) + kDense);
  CHECK(many_headers <= few_headers + 16 * 2 * 8);
}

}  // namespace
}  // namespace lockstep::worker
