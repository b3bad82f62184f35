// TensorFlow's own tests of the dense conditional accumulator (conditional_accumulator_test.py), by
// their names, and the cases that it leaves out.
#include "ps/accumulator/dense_accumulator.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/match.h"

namespace lockstep::ps {
namespace {

using Accumulator = ConditionalAccumulator<TensorView, Tensor>;

_Float16 ToHalf(float value) { return static_cast<_Float16>(value); }

Tensor Of(const Shape& shape, const std::vector<float>& values, DType dtype = DType::kFloat32) {
  Tensor tensor(dtype, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    switch (dtype) {
      case DType::kFloat32:
        static_cast<float*>(tensor.data())[i] = values[i];
        break;
      case DType::kFloat64:
        static_cast<double*>(tensor.data())[i] = values[i];
        break;
      case DType::kFloat16:
        static_cast<_Float16*>(tensor.data())[i] = ToHalf(values[i]);
        break;
      default:  // bfloat16, for values that it has exactly
        static_cast<uint16_t*>(tensor.data())[i] = std::bit_cast<uint32_t>(values[i]) >> 16;
    }
  }
  return tensor;
}

Tensor Of(float value, DType dtype = DType::kFloat32) { return Of(Shape({1}), {value}, dtype); }

std::vector<float> Values(const Tensor& tensor) {
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    switch (tensor.dtype()) {
      case DType::kFloat32:
        values.push_back(static_cast<const float*>(tensor.data())[i]);
        break;
      case DType::kFloat64:
        values.push_back(static_cast<float>(static_cast<const double*>(tensor.data())[i]));
        break;
      case DType::kFloat16:
        values.push_back(static_cast<float>(static_cast<const _Float16*>(tensor.data())[i]));
        break;
      default:
        values.push_back(
            std::bit_cast<float>(uint32_t{static_cast<const uint16_t*>(tensor.data())[i]} << 16));
    }
  }
  return values;
}

// An accumulator of shape [1] unless told otherwise, and what its takes have returned.
class Fixture {
 public:
  explicit Fixture(Reduction reduction = Reduction::kMean, DType dtype = DType::kFloat32,
                   PartialShape shape = PartialShape(Shape({1})))
      : accumulator(dtype, std::move(shape), reduction), dtype_(dtype) {}

  absl::Status Apply(const Tensor& gradient, int64_t local_step = 0) {
    auto applied = accumulator.Apply(GlobalStep(local_step), gradient.view());
    if (!applied.ok()) return applied.status();
    was_accepted = applied->accepted;
    Note(std::move(applied->finished));
    return absl::OkStatus();
  }
  void Apply(float gradient, int64_t local_step = 0) {
    REQUIRE(Apply(Of(gradient, dtype_), local_step).ok());
  }

  TakeId Start(int required) {
    const TakeId id(++last_take_);
    auto finished = accumulator.Take(id, required);
    REQUIRE(finished.ok());
    Note(*std::move(finished));
    return id;
  }
  void Cancel(TakeId id) { Note(accumulator.Cancel(id)); }

  // A take that must be satisfied at once.
  std::vector<float> Take(int required) {
    const TakeId id = Start(required);
    REQUIRE(IsFinished(id));
    return ResultOf(id);
  }

  bool IsFinished(TakeId id) const { return finished_.contains(id); }
  absl::Status StatusOf(TakeId id) const { return finished_.at(id).gradient.status(); }
  std::vector<float> ResultOf(TakeId id) const {
    REQUIRE(StatusOf(id).ok());
    return Values(*finished_.at(id).gradient);
  }
  int CountOf(TakeId id) const { return finished_.at(id).count; }

  DenseAccumulator accumulator;
  bool was_accepted = false;

 private:
  void Note(std::vector<Accumulator::FinishedTake> finished) {
    for (auto& take : finished) {
      const TakeId id = take.id;
      REQUIRE(finished_.emplace(id, std::move(take)).second);
    }
  }

  const DType dtype_;
  uint64_t last_take_ = 0;
  std::map<TakeId, Accumulator::FinishedTake> finished_;
};

const Shape kMatrix({3, 2});
const std::vector<float> kOnes = {1, 2, 3, 4, 5, 6};
const std::vector<float> kTens = {10, 20, 30, 40, 50, 60};
const std::vector<float> kMean = {5.5f, 11, 16.5f, 22, 27.5f, 33};

TEST_CASE("testAccumulatorSizeEmpty") { CHECK(Fixture().accumulator.num_accumulated() == 0); }

TEST_CASE("testAccumulatorSetGlobalStep") {
  Fixture f;
  CHECK(f.accumulator.SetGlobalStep(GlobalStep(1)) == Accumulator::StepChange::kSet);
  CHECK(f.accumulator.global_step() == GlobalStep(1));
}

TEST_CASE("testAccumulatorApplyGradFloat32") {
  Fixture f;
  f.Apply(10);
  CHECK(f.was_accepted);
}

TEST_CASE("testDtypes") {
  const DType dtype = GENERATE(DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kBFloat16);
  Fixture f(Reduction::kMean, dtype);
  for (int i = 0; i < 10; ++i) f.Apply(static_cast<float>(i));
  CHECK(f.Take(1) == std::vector<float>{4.5f});
}

TEST_CASE("testAccumulatorMultipleAccumulators") {
  std::vector<std::unique_ptr<Fixture>> fixtures;
  for (const DType dtype : {DType::kFloat16, DType::kFloat16, DType::kFloat32, DType::kFloat32}) {
    fixtures.push_back(std::make_unique<Fixture>(Reduction::kMean, dtype));
  }
  for (int i = 0; i < 4; ++i) fixtures[i]->Apply(static_cast<float>(i + 10));
  for (int i = 0; i < 4; ++i) CHECK(fixtures[i]->Take(1)[0] == static_cast<float>(i + 10));
}

TEST_CASE("testAccumulatorApplyAndTakeGradWithShape") {
  Fixture f(Reduction::kMean, DType::kFloat32, PartialShape(kMatrix));
  REQUIRE(f.Apply(Of(kMatrix, kOnes)).ok());
  REQUIRE(f.Apply(Of(kMatrix, kTens)).ok());
  CHECK(f.Take(1) == kMean);
}

TEST_CASE("testAccumulatorApplyGradWithWrongShape") {
  Fixture f(Reduction::kMean, DType::kFloat32, PartialShape(kMatrix));
  for (const Shape& wrong : {Shape({2, 2}), Shape({3, 1}), Shape({6}), Shape()}) {
    const absl::Status status = f.Apply(Tensor::Zeros(DType::kFloat32, wrong));
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(status.message() == "Shape mismatch: expected [3,2], got " + wrong.ToString());
  }
  CHECK(f.accumulator.num_accumulated() == 0);
}

TEST_CASE("testAccumulatorDynamicShape") {
  Fixture f(Reduction::kMean, DType::kFloat32, PartialShape());
  REQUIRE(f.Apply(Of(kMatrix, kOnes)).ok());
  REQUIRE(f.Apply(Of(kMatrix, kTens)).ok());
  CHECK(f.Take(1) == kMean);
}

TEST_CASE("testAccumulatorWrongDynamicShape") {
  Fixture f(Reduction::kMean, DType::kFloat32, PartialShape());
  REQUIRE(f.Apply(Of(kMatrix, kOnes)).ok());
  for (const Shape& wrong : {Shape({2, 2}), Shape({3, 1})}) {
    CHECK(f.Apply(Tensor::Zeros(DType::kFloat32, wrong)).code() ==
          absl::StatusCode::kInvalidArgument);
  }
  CHECK(f.accumulator.num_accumulated() == 1);
  CHECK(f.Take(1) == kOnes);
  // The shape was pinned by the first gradient only until the take.
  CHECK(f.Apply(Tensor::Zeros(DType::kFloat32, Shape({2, 2})), 1).ok());
}

TEST_CASE("testAccumulatorSizeAfterApplyGrad") {
  Fixture f;
  CHECK(f.accumulator.num_accumulated() == 0);
  f.Apply(10);
  CHECK(f.accumulator.num_accumulated() == 1);
  f.Apply(10);
  CHECK(f.accumulator.num_accumulated() == 2);
}

TEST_CASE("testAccumulatorSizeAfterApplyGradAndTakeGrad") {
  Fixture f;
  f.Apply(10);
  f.Apply(10);
  CHECK(f.accumulator.num_accumulated() == 2);
  f.Take(2);
  CHECK(f.accumulator.num_accumulated() == 0);
  for (int i = 0; i < 4; ++i) f.Apply(10, 1);
  CHECK(f.accumulator.num_accumulated() == 4);
  f.Take(2);
  CHECK(f.accumulator.num_accumulated() == 0);
}

TEST_CASE("testAccumulatorTakeGradMean") {
  Fixture f;
  f.Apply(10);
  f.Apply(20);
  CHECK(f.Take(1)[0] == 15);
  f.Apply(10, 1);
  f.Apply(20, 1);
  CHECK(f.Take(1)[0] == 15);
}

TEST_CASE("testAccumulatorTakeGradSum") {
  Fixture f(Reduction::kSum);
  f.Apply(10);
  f.Apply(20);
  CHECK(f.Take(1)[0] == 30);
  f.Apply(10, 1);
  f.Apply(20, 1);
  CHECK(f.Take(1)[0] == 30);
}

TEST_CASE("testAccumulatorInvalidTakeGrad") {
  Fixture f;
  f.Apply(10);
  f.Apply(20);
  for (const int required : {-1, 0}) {
    const auto taken = f.accumulator.Take(TakeId(99), required);
    CHECK(taken.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(taken.status().message(), "num_required must be positive"));
  }
  CHECK(f.accumulator.num_waiting() == 0);
  CHECK(f.accumulator.num_accumulated() == 2);
}

TEST_CASE("testAccumulatorRepeatedTakeGradMean") {
  Fixture f;
  f.Apply(10);
  f.Apply(20);
  CHECK(f.Take(1)[0] == 15);
  f.Apply(20, 1);
  f.Apply(30, 1);
  CHECK(f.Take(1)[0] == 25);
}

TEST_CASE("testAccumulatorRepeatedTakeGradSum") {
  Fixture f(Reduction::kSum);
  f.Apply(10);
  f.Apply(20);
  CHECK(f.Take(1)[0] == 30);
  f.Apply(20, 1);
  f.Apply(30, 1);
  CHECK(f.Take(1)[0] == 50);
}

TEST_CASE("testAccumulatorIncrementGlobalStep") {
  Fixture f;
  for (int64_t step = 0; step < 3; ++step) {
    CHECK(f.accumulator.SetGlobalStep(GlobalStep(step + 1)) == Accumulator::StepChange::kSet);
    CHECK(f.accumulator.global_step() == GlobalStep(step + 1));
  }
}

TEST_CASE("testAccumulatorSetGlobalStepPreventsAccumulation") {
  Fixture f;
  const std::vector<float> expected = {1002, 1002.5f, 1003, 1003.5f, 1004};
  for (int64_t step = 1000; step < 1005; ++step) {
    f.accumulator.SetGlobalStep(GlobalStep(step));
    for (int64_t stamp = 1000; stamp < 1005; ++stamp) f.Apply(static_cast<float>(stamp), stamp);
    CHECK(f.Take(1)[0] == expected[step - 1000]);
  }
}

TEST_CASE("testParallelApplyGrad") {
  // The class is sequential; the order of arrival is what threads could vary.
  std::vector<float> gradients = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
  const int rotation = GENERATE(0, 3, 7);
  std::rotate(gradients.begin(), gradients.begin() + rotation, gradients.end());
  Fixture f;
  for (const float gradient : gradients) f.Apply(gradient);
  CHECK(f.Take(1)[0] == 55);
}

TEST_CASE("testParallelTakeGrad") {
  Fixture f;
  std::vector<TakeId> takes;
  for (int i = 0; i < 10; ++i) takes.push_back(f.Start(1));
  CHECK(f.accumulator.num_waiting() == 10);
  for (int64_t e = 0; e < 10; ++e) f.Apply(static_cast<float>(e), e);
  for (int i = 0; i < 10; ++i) CHECK(f.ResultOf(takes[i])[0] == static_cast<float>(i));
}

TEST_CASE("testAccumulatorApplyAndBlockingTake") {
  Fixture f;
  const TakeId take = f.Start(3);
  f.Apply(10);
  f.Apply(20);
  CHECK_FALSE(f.IsFinished(take));
  f.Apply(30);
  CHECK(f.ResultOf(take)[0] == 20);
}

TEST_CASE("testAccumulatorCancel") {
  Fixture f;
  const TakeId take = f.Start(1);
  f.Cancel(take);
  CHECK(f.StatusOf(take).code() == absl::StatusCode::kCancelled);
  CHECK(absl::StrContains(f.StatusOf(take).message(), "was cancelled"));
  CHECK(f.accumulator.global_step() == GlobalStep(0));
  f.Apply(10);
  CHECK(f.accumulator.num_accumulated() == 1);
}

TEST_CASE("a take in front blocks those behind it that ask for less") {
  Fixture f;
  const TakeId first = f.Start(3);
  const TakeId second = f.Start(1);
  f.Apply(1);
  f.Apply(2);
  CHECK_FALSE(f.IsFinished(second));
  f.Apply(3);
  CHECK(f.ResultOf(first)[0] == 2);
  CHECK_FALSE(f.IsFinished(second));
  f.Apply(7, 1);
  CHECK(f.ResultOf(second)[0] == 7);
}

TEST_CASE("the divisor is everything accumulated, not what was required") {
  Fixture f;
  for (const float gradient : {1.f, 2.f, 3.f, 4.f, 10.f}) f.Apply(gradient);
  const TakeId take = f.Start(2);
  CHECK(f.ResultOf(take)[0] == 4);
  CHECK(f.CountOf(take) == 5);
  CHECK(f.accumulator.num_accumulated() == 0);
  CHECK(f.accumulator.global_step() == GlobalStep(1));
}

TEST_CASE("lowering the step warns, works, and keeps what was accumulated") {
  Fixture f;
  f.accumulator.SetGlobalStep(GlobalStep(5));
  f.Apply(10, 5);
  CHECK(f.accumulator.SetGlobalStep(GlobalStep(2)) == Accumulator::StepChange::kLowered);
  CHECK(f.accumulator.global_step() == GlobalStep(2));
  f.Apply(20, 2);
  CHECK(f.was_accepted);
  f.Apply(99, 1);
  CHECK_FALSE(f.was_accepted);
  CHECK(f.Take(2)[0] == 15);
  CHECK(f.accumulator.global_step() == GlobalStep(3));
}

TEST_CASE("setting the step does not serve a waiting take, the next gradient does") {
  Fixture f;
  f.Apply(10);
  const TakeId take = f.Start(2);
  f.accumulator.SetGlobalStep(GlobalStep(1));
  CHECK_FALSE(f.IsFinished(take));
  f.Apply(99, 0);
  CHECK_FALSE(f.was_accepted);
  CHECK_FALSE(f.IsFinished(take));
  f.Apply(30, 1);
  CHECK(f.ResultOf(take)[0] == 20);
}

TEST_CASE("a stale gradient is dropped before anything is validated") {
  Fixture f;
  f.accumulator.SetGlobalStep(GlobalStep(3));
  CHECK(f.Apply(Tensor::Zeros(DType::kFloat64, Shape({7, 7})), 2).ok());
  CHECK_FALSE(f.was_accepted);
  CHECK(f.accumulator.num_accumulated() == 0);
  CHECK(f.Apply(Tensor::Zeros(DType::kFloat64, Shape({1})), 3).code() ==
        absl::StatusCode::kInvalidArgument);
}

TEST_CASE("an invalid gradient changes nothing while others accumulate") {
  Fixture f;
  f.Apply(10);
  CHECK_FALSE(f.Apply(Of(Shape({2}), {1, 2})).ok());
  f.Apply(20);
  CHECK(f.accumulator.num_accumulated() == 2);
  CHECK(f.Take(2)[0] == 15);
}

TEST_CASE("gradients from the future are fresh") {
  Fixture f;
  f.Apply(10, 0);
  f.Apply(20, 1000000);
  CHECK(f.was_accepted);
  CHECK(f.Take(2)[0] == 15);
  CHECK(f.accumulator.global_step() == GlobalStep(1));
}

TEST_CASE("cancelling a take that is not in front leaves the others in their order") {
  Fixture f;
  const TakeId first = f.Start(1);
  const TakeId second = f.Start(1);
  const TakeId third = f.Start(1);
  f.Cancel(second);
  CHECK(f.StatusOf(second).code() == absl::StatusCode::kCancelled);
  CHECK_FALSE(f.IsFinished(first));
  f.Apply(1, 0);
  f.Apply(2, 1);
  CHECK(f.ResultOf(first)[0] == 1);
  CHECK(f.ResultOf(third)[0] == 2);
}

TEST_CASE("cancelling the take in front serves the one behind it") {
  Fixture f;
  const TakeId first = f.Start(5);
  const TakeId second = f.Start(2);
  f.Apply(10);
  f.Apply(20);
  CHECK_FALSE(f.IsFinished(second));
  f.Cancel(first);
  CHECK(f.StatusOf(first).code() == absl::StatusCode::kCancelled);
  CHECK(f.ResultOf(second)[0] == 15);
  CHECK(f.accumulator.global_step() == GlobalStep(1));
  // Not waiting any more: nothing happens.
  CHECK(f.accumulator.Cancel(first).empty());
  CHECK(f.accumulator.Cancel(TakeId(1234)).empty());
}

TEST_CASE("half precision is summed and divided in half precision, as TensorFlow does") {
  // Seven gradients ((7i + 13k + 3ik) mod 41 - 20) / 64 * 1.1 * 100, given to
  // tf.compat.v1.ConditionalAccumulator of TensorFlow 2.21.0: what it returned.
  const std::map<DType, std::vector<float>> expected = {
      {DType::kFloat16,
       {0x1.3a4p+1f, -0x1.f6cp-3f, -0x1.794p+1f, -0x1.698p+2f, 0x1.b8p+0f, 0x1.22cp+3f,
        -0x1.d78p+1f, -0x1.988p+2f, 0x1.f6cp-1f}},
      {DType::kFloat32,
       {0x1.3a4926p+1f, -0x1.f6db6ep-3f, -0x1.792496p+1f, -0x1.696db6p+2f, 0x1.b80002p+0f,
        0x1.22b6dcp+3f, -0x1.d76db6p+1f, -0x1.98924ap+2f, 0x1.f6db76p-1f}}};
  const DType dtype = GENERATE(DType::kFloat16, DType::kFloat32);
  const Shape shape({9});
  Fixture f(Reduction::kMean, dtype, PartialShape(shape));
  for (int k = 0; k < 7; ++k) {
    std::vector<float> gradient;
    for (int i = 0; i < 9; ++i) {
      const float base = static_cast<float>((i * 7 + k * 13 + i * k * 3) % 41 - 20) / 64.0f;
      gradient.push_back(base * 1.1f * 100.0f);
    }
    REQUIRE(f.Apply(Of(shape, gradient, dtype)).ok());
  }
  CHECK(f.Take(7) == expected.at(dtype));
}

TEST_CASE("sums of half precision and bfloat16 round at every addition") {
  // 2048 + 1 is a tie in half precision, 256 + 1 in bfloat16: to even, so nothing is added.
  Fixture half(Reduction::kSum, DType::kFloat16);
  half.Apply(2048);
  for (int i = 0; i < 100; ++i) half.Apply(1);
  CHECK(half.Take(1)[0] == 2048);
  Fixture brain(Reduction::kSum, DType::kBFloat16);
  brain.Apply(256);
  for (int i = 0; i < 100; ++i) brain.Apply(1);
  CHECK(brain.Take(1)[0] == 256);
  // Beyond the largest half there is infinity.
  Fixture large(Reduction::kMean, DType::kFloat16);
  large.Apply(60000);
  large.Apply(60000);
  CHECK(large.Take(2)[0] == std::numeric_limits<float>::infinity());
}

TEST_CASE("a bfloat16 sum keeps NaN a NaN and rounds to nearest even") {
  Fixture f(Reduction::kSum, DType::kBFloat16);
  f.Apply(std::numeric_limits<float>::quiet_NaN());
  f.Apply(1);
  CHECK(std::isnan(f.Take(1)[0]));
  f.Apply(257 - 1, 1);  // 256 + 3 = 259 lies between 258 and 260: a tie, to even
  f.Apply(3, 1);
  CHECK(f.Take(1)[0] == 260);
}

TEST_CASE("a recycled buffer is used again when it fits and changes no result") {
  Fixture f;
  f.Apply(10);
  auto taken = f.accumulator.Take(TakeId(7), 1);
  Tensor buffer = *std::move(taken->front().gradient);
  const void* memory = buffer.data();
  f.accumulator.Recycle(std::move(buffer));
  f.Apply(4, 1);
  f.Apply(6, 1);
  taken = f.accumulator.Take(TakeId(8), 1);
  CHECK(taken->front().gradient->data() == memory);
  CHECK(Values(*taken->front().gradient)[0] == 5);
  f.accumulator.Recycle(Tensor(DType::kFloat64, Shape({3})));
  f.Apply(1, 2);
  CHECK(f.Take(1)[0] == 1);
}

TEST_CASE("a partly known shape pins what it names and the first gradient the rest") {
  Fixture f(Reduction::kMean, DType::kFloat32,
            PartialShape(std::vector<int64_t>{PartialShape::kUnknown, 2}));
  const absl::Status wrong = f.Apply(Tensor::Zeros(DType::kFloat32, Shape({3, 3})));
  CHECK(wrong.message() == "Shape mismatch: expected [?,2], got [3,3]");
  CHECK(f.Apply(Of(kMatrix, kOnes)).ok());
  CHECK(f.Apply(Tensor::Zeros(DType::kFloat32, Shape({4, 2}))).message() ==
        "Shape mismatch: expected [3,2], got [4,2]");
}

}  // namespace
}  // namespace lockstep::ps
