#include "deploy/data/clicks/click_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"

namespace lockstep::deploy {
namespace {

struct Column {
  const char* name;
  int64_t size;     // number of ids
  double exponent;  // of Zipf's law: the id of rank k is seen as often as k^-exponent says
  double effect;    // standard deviation of what an id adds to the logit
};

enum { kUser, kPage, kAd, kCity, kCampaign, kCategory, kHour, kDevice };

constexpr Column kColumns[Click::kCategorical] = {
    {"user", 66668, 1.2, 0.3}, {"page", 20000, 1.2, 0.3},   {"ad", 8000, 1.1, 0.4},
    {"city", 3000, 1.1, 0.4},  {"campaign", 800, 1.1, 0.5}, {"category", 60, 1.0, 0.5},
    {"hour", 24, 0.5, 0.4},    {"device", 8, 0.8, 0.4},
};
constexpr char kCrossed[] = "category_x_hour";
constexpr double kCrossedEffect = 0.8;
// Campaigns and categories are of so many kinds, and each pair of kinds has an effect.
constexpr int64_t kKinds = 4;
constexpr double kMatchEffect = 1.2;
constexpr double kSlopeEffect = 1.0;  // of the last number, by device
constexpr double kBias = -1.2;

// Popular ids lie anywhere among those of their column: rank k has the id kStride * k modulo the
// size, which no size is a multiple of.
constexpr int64_t kStride = 7919;

double Uniform(uint32_t bits) { return (bits + 0.5) * 0x1.0p-32; }

double Normal(uint32_t a, uint32_t b) {
  return std::sqrt(-2 * std::log(Uniform(a))) * std::cos(2 * std::numbers::pi * Uniform(b));
}

// A standard normal number that belongs to `id`.
double TraitOf(uint64_t seed, absl::string_view purpose, int64_t id) {
  const Philox::Block block = Philox(seed, purpose).At(static_cast<uint64_t>(id));
  return Normal(block[0], block[1]);
}

int64_t KindOf(uint64_t seed, absl::string_view purpose, int64_t id) {
  return Philox(seed, purpose).At(static_cast<uint64_t>(id))[0] % kKinds;
}

}  // namespace

ClickModel::ClickModel(uint64_t seed) : seed_(seed), examples_(seed, "clicks/examples") {
  for (int c = 0; c < Click::kCategorical; ++c) {
    double sum = 0;
    for (int64_t rank = 0; rank < kColumns[c].size; ++rank) {
      sum += std::pow(static_cast<double>(rank + 1), -kColumns[c].exponent);
      popularity_[c].push_back(sum);
    }
  }
}

int64_t ClickModel::num_rows() {
  int64_t rows = kColumns[kCategory].size * kColumns[kHour].size;
  for (const Column& column : kColumns) rows += column.size;
  return rows;
}

std::vector<std::string> ClickModel::ColumnNames() {
  std::vector<std::string> names;
  for (const Column& column : kColumns) names.push_back(column.name);
  names.push_back(kCrossed);
  for (int i = 0; i < Click::kNumeric; ++i) names.push_back(absl::StrCat("x", i));
  return names;
}

Click ClickModel::At(int64_t example) const {
  // Lane 0 and 1: the ids; 2 to 4: the numbers; 5: the click.
  const auto draw = [&](int lane) { return examples_.At(static_cast<uint64_t>(example), lane); };
  Click click;
  std::array<int64_t, Click::kCategorical> ids;
  int64_t first_row = 0;
  for (int c = 0; c < Click::kCategorical; ++c) {
    const std::vector<double>& popularity = popularity_[c];
    const double at = Uniform(draw(c / 4)[c % 4]) * popularity.back();
    const int64_t rank = std::ranges::upper_bound(popularity, at) - popularity.begin();
    ids[c] = std::min(rank, kColumns[c].size - 1) * kStride % kColumns[c].size;
    click.rows[c] = first_row + ids[c];
    first_row += kColumns[c].size;
  }
  click.rows[Click::kCategorical] = first_row + ids[kCategory] * kColumns[kHour].size + ids[kHour];
  for (int i = 0; i < Click::kNumeric; ++i) {
    const Philox::Block block = draw(2 + i / 2);
    const double number = Normal(block[i % 2 * 2], block[i % 2 * 2 + 1]);
    click.numbers[i] = std::round(number * 1000) / 1000;
  }
  click.probability = 1 / (1 + std::exp(-Logit(ids, click)));
  click.clicked = Uniform(draw(5)[0]) < click.probability;
  return click;
}

double ClickModel::Logit(const std::array<int64_t, Click::kCategorical>& ids,
                         const Click& click) const {
  double logit = kBias;
  for (int c = 0; c < Click::kCategorical; ++c) {
    logit += kColumns[c].effect * TraitOf(seed_, kColumns[c].name, ids[c]);
  }
  logit += kCrossedEffect * TraitOf(seed_, kCrossed, click.rows[Click::kCategorical]);
  const int64_t kinds = KindOf(seed_, "kind of campaign", ids[kCampaign]) * kKinds +
                        KindOf(seed_, "kind of category", ids[kCategory]);
  logit += kMatchEffect * TraitOf(seed_, "match", kinds);
  const auto& x = click.numbers;
  logit += x[0] * x[1] + std::abs(x[2]) + std::sin(2 * x[3]) + 0.5 * x[4];
  logit += kSlopeEffect * TraitOf(seed_, "slope", ids[kDevice]) * x[5];
  return logit;
}

}  // namespace lockstep::deploy
