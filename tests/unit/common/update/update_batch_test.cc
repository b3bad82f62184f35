#include "common/update/update_batch.h"

#include <catch2/catch.hpp>
#include <map>
#include <utility>

#include "common/base/thread_pool.h"
#include "common/optimizer/sgd.h"

namespace lockstep {
namespace {

constexpr int64_t kRange = DenseUpdate::kRangeBytes / sizeof(float);

// Variables of such sizes, in elements, that begin at 0 and get one gradient of ones.
class Variables {
 public:
  explicit Variables(const std::vector<int64_t>& sizes) : rule_(MakeSgd()) {
    for (const int64_t size : sizes) {
      const Shape shape({size});
      variables_.push_back(std::make_unique<Variable>(
          "v", true, Tensor::Zeros(DType::kFloat32, shape), GlobalStep(0), std::vector<Tensor>()));
      Tensor gradient(DType::kFloat32, shape);
      for (float& element : gradient.as<float>()) element = 1;
      gradients_.push_back({std::move(gradient)});
    }
  }

  std::vector<DenseUpdate> Updates() {
    std::vector<DenseUpdate> updates;
    for (size_t i = 0; i < variables_.size(); ++i) {
      updates.emplace_back(GlobalStep(0), 1, *rule_, absl::Span<const float>(),
                           variables_[i].get());
      updates.back().SetGradients({SourceOf(gradients_[i])}, 1);
    }
    return updates;
  }

  // Whether all of it has moved, by one.
  static bool IsMade(const NextValue& next) {
    for (const float element : next.value->as<float>()) {
      if (element != -1) return false;
    }
    return true;
  }

 private:
  std::unique_ptr<const UpdateRule> rule_;
  std::vector<std::unique_ptr<Variable>> variables_;
  std::vector<Gradient> gradients_;
};

// Which updates became whole with each part, one part after the other.
std::map<size_t, std::pair<size_t, size_t>> WholeAfter(const std::vector<int64_t>& sizes) {
  Variables variables(sizes);
  UpdateBatch together(variables.Updates());
  std::map<size_t, std::pair<size_t, size_t>> whole_after;
  for (size_t part = 0; part < together.num_parts(); ++part) {
    UpdateBatch::Group whole;
    if (!together.Make(part, &whole)) continue;
    whole_after[part] = {whole.first, whole.end};
    for (size_t i = whole.first; i < whole.end; ++i) {
      CHECK(Variables::IsMade(together.update(i).Finish()));
    }
  }
  return whole_after;
}

using Groups = std::map<size_t, std::pair<size_t, size_t>>;

TEST_CASE("a large variable is whole after its last range") {
  CHECK(WholeAfter({3 * kRange + 1}) == Groups{{3, {0, 1}}});
  CHECK(WholeAfter({16 * kRange, 16 * kRange}) == Groups{{15, {0, 1}}, {31, {1, 2}}});
}

TEST_CASE("small variables are one part, and whole together") {
  CHECK(WholeAfter({1, 2, 3, 4}) == Groups{{0, {0, 4}}});
  CHECK(WholeAfter({1, 0, 3}) == Groups{{0, {0, 3}}});
}

TEST_CASE("small variables that are more than a part are several") {
  CHECK(WholeAfter({kRange / 2, kRange / 2, kRange / 2, kRange / 2}) == Groups{{1, {0, 4}}});
}

TEST_CASE("a group ends before what is too much for it, in the order of the variables") {
  CHECK(WholeAfter({1, 4 * kRange, 1}) == Groups{{0, {0, 1}}, {4, {1, 2}}, {5, {2, 3}}});
  CHECK(WholeAfter({3 * kRange, kRange, 1}) == Groups{{1, {0, 2}}, {2, {2, 3}}});
}

TEST_CASE("a variable without elements, and no variables at all") {
  CHECK(WholeAfter({0}) == Groups{{0, {0, 1}}});
  CHECK(WholeAfter({}).empty());
}

TEST_CASE("many threads make each variable once") {
  Variables variables({5, 5 * kRange, 7, 2 * kRange + 3, 1, 9 * kRange});
  UpdateBatch together(variables.Updates());
  std::vector<std::atomic<int>> finished(6);
  std::atomic<int> wrong = 0;
  ThreadPool pool(4);
  pool.ForRanges(together.num_parts(), 1, [&](size_t part, size_t) {
    UpdateBatch::Group whole;
    if (!together.Make(part, &whole)) return;
    for (size_t i = whole.first; i < whole.end; ++i) {
      ++finished[i];
      wrong += Variables::IsMade(together.update(i).Finish()) ? 0 : 1;
    }
  });
  CHECK(wrong == 0);
  for (const auto& times : finished) CHECK(times == 1);
}

}  // namespace
}  // namespace lockstep
