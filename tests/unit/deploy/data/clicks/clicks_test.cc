#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "common/dataset/example_table.h"
#include "deploy/data/clicks/click_files.h"
#include "deploy/data/clicks/click_model.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::deploy {
namespace {

constexpr int64_t kExamples = 20000;
constexpr int kUser = 0;
constexpr int64_t kUsers = 66668;
constexpr double kExponent = 1.2;          // of their popularity
constexpr int64_t kCrossedRows = 60 * 24;  // categories and hours

TEST_CASE("An example is a function of seed and number") {
  const ClickModel model(1);
  const ClickModel same(1);
  const ClickModel other(2);
  int differences = 0;
  for (int64_t i : {0, 7, 199999, 7}) {
    const Click click = model.At(i);
    CHECK(click.rows == same.At(i).rows);
    CHECK(click.numbers == same.At(i).numbers);
    CHECK(click.probability == same.At(i).probability);
    CHECK(click.clicked == same.At(i).clicked);
    differences += click.rows != other.At(i).rows;
    CHECK(click.rows != model.At(i + 1).rows);
  }
  CHECK(differences == 4);
}

TEST_CASE("Columns have rows of their own, and the crossed one follows from its two") {
  const ClickModel model(1);
  CHECK(ClickModel::num_rows() == 100000);
  CHECK(ClickModel::ColumnNames().size() == Click::kCategorical + 1 + Click::kNumeric);
  std::map<int64_t, std::pair<int64_t, int64_t>> crossed;
  for (int64_t i = 0; i < kExamples; ++i) {
    const Click click = model.At(i);
    bool ascending = click.rows[0] >= 0;
    for (size_t c = 1; c < click.rows.size(); ++c) {
      ascending = ascending && click.rows[c - 1] < click.rows[c];
    }
    CHECK(ascending);
    CHECK(click.rows[kUser] < kUsers);
    CHECK(click.rows[Click::kCategorical] >= ClickModel::num_rows() - kCrossedRows);
    CHECK(click.rows[Click::kCategorical] < ClickModel::num_rows());
    const std::pair<int64_t, int64_t> pair = {click.rows[5], click.rows[6]};
    CHECK(crossed.try_emplace(click.rows[Click::kCategorical], pair).first->second == pair);
  }
  CHECK(crossed.size() > 1000);
}

TEST_CASE("Ids are as skewed as Zipf's law says") {
  double sum = 0;
  for (int64_t rank = 1; rank <= kUsers; ++rank) sum += std::pow(rank, -kExponent);
  const ClickModel model(1);
  std::map<int64_t, int64_t> seen;
  for (int64_t i = 0; i < kExamples; ++i) ++seen[model.At(i).rows[kUser]];
  std::vector<int64_t> counts;
  for (const auto& [user, count] : seen) counts.push_back(count);
  std::sort(counts.rbegin(), counts.rend());
  for (int rank : {1, 2, 3, 10}) {
    const double expected = kExamples * std::pow(rank, -kExponent) / sum;
    CHECK(std::abs(counts[rank - 1] - expected) < 5 * std::sqrt(expected));
  }
}

TEST_CASE("Clicks happen as often as their probabilities say, in every range of them") {
  const ClickModel model(1);
  struct Range {
    double expected = 0;
    double variance = 0;
    double clicked = 0;
  };
  std::array<Range, 10> ranges;
  for (int64_t i = 0; i < kExamples; ++i) {
    const Click click = model.At(i);
    CHECK((click.probability > 0 && click.probability < 1));
    Range& range = ranges[static_cast<size_t>(click.probability * 10)];
    range.expected += click.probability;
    range.variance += click.probability * (1 - click.probability);
    range.clicked += click.clicked;
  }
  for (const Range& range : ranges) {
    CHECK(range.variance > 10);
    CHECK(std::abs(range.clicked - range.expected) < 4 * std::sqrt(range.variance));
  }
}

TEST_CASE("The files hold the examples, and the figures are those of the test file") {
  const test::TemporaryFolder folder;
  const auto figures = WriteClickFiles(folder.path(), {.train = 300, .test = 2000, .seed = 5});
  REQUIRE(figures.ok());
  DataDef data;
  data.mutable_csv()->add_train(folder.Path("train.csv"));
  data.mutable_csv()->set_test(folder.Path("test.csv"));
  data.mutable_csv()->set_label_column("click");
  const auto train = ReadExamples(data, Split::kTrain);
  const auto test = ReadExamples(data, Split::kTest);
  REQUIRE(train.ok());
  REQUIRE(test.ok());
  CHECK(train->size() == 300);
  CHECK(train->columns == ClickModel::ColumnNames());
  REQUIRE(test->size() == 2000);

  const ClickModel model(5);
  double clicked = 0;
  double right = 0;
  double loss = 0;
  VisitElements(test->features, [&](auto features) {
    VisitElements(test->labels, [&](auto labels) {
      for (int64_t i = 0; i < test->size(); ++i) {
        const Click click = model.At(300 + i);
        const size_t first = i * (click.rows.size() + click.numbers.size());
        for (size_t c = 0; c < click.rows.size(); ++c) CHECK(features[first + c] == click.rows[c]);
        for (size_t c = 0; c < click.numbers.size(); ++c) {
          CHECK(features[first + click.rows.size() + c] == Approx(click.numbers[c]).margin(1e-6));
        }
        CHECK(labels[i] == (click.clicked ? 1 : 0));
        clicked += labels[i];
        right += (click.probability > 0.5) == (labels[i] == 1);
        loss -= std::log(labels[i] == 1 ? click.probability : 1 - click.probability);
      }
    });
  });
  CHECK(figures->majority == Approx(std::max(clicked, 2000 - clicked) / 2000));
  CHECK(figures->best_accuracy == Approx(right / 2000));
  CHECK(figures->best_log_loss == Approx(loss / 2000));
  CHECK(figures->best_accuracy > figures->majority + 0.1);
}

TEST_CASE("A folder that is not there is an error that names it") {
  const auto figures = WriteClickFiles("/nowhere", {.train = 1, .test = 1});
  REQUIRE_FALSE(figures.ok());
  CHECK_THAT(std::string(figures.status().message()), Catch::Contains("/nowhere"));
}

}  // namespace
}  // namespace lockstep::deploy
