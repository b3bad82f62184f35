#include "tests/chaos/ledger.h"

#include "absl/strings/str_cat.h"

namespace lockstep::test {
namespace {

// The output is the sum of the two rows, so the gradient of each is (output - kTarget). Rows begin
// at 0: one that is counted once is kRate * kTarget. One that is counted in two steps is another
// number, since its second gradient is another one. All of them are exact in float32. Counted twice
// in one step, it takes the place of another replica's: the mean of a row is that over the
// gradients that have it.
constexpr int kTarget = 4;
constexpr float kRate = 0.125F;
constexpr float kCounted = kRate * kTarget;
constexpr size_t kMostLines = 10;

}  // namespace

std::string Ledger::Csv() const {
  std::string csv;
  for (int64_t row = 0; row < num_rows(); ++row) absl::StrAppend(&csv, row, ",", kTarget, "\n");
  return csv;
}

std::string Ledger::Model() const {
  const std::string table = absl::StrCat("inputs: 'input' embedding { rows: ", num_rows(),
                                         " dim: 1 initializer { zeros {} } } }\n");
  return absl::StrCat("input_shape: [1]\nlayers { name: 'first' ", table,
                      "layers { name: 'second' ", table,
                      "layers { name: 'sum' inputs: ['first', 'second'] add {} }\n"
                      "layers { name: 'loss' l2_loss {} }\n");
}

std::string Ledger::Optimizer() {
  return absl::StrCat("sgd {} learning_rate { base: ", kRate, " }");
}

std::vector<std::string> Ledger::Check(absl::string_view table, std::span<const float> values,
                                       int64_t steps) const {
  std::vector<std::string> wrong;
  if (static_cast<int64_t>(values.size()) != num_rows()) {
    return {absl::StrCat(table, ": ", values.size(), " rows, expected ", num_rows())};
  }
  for (int64_t step = 0; step < kMaxSteps && wrong.size() < kMostLines; ++step) {
    int counted = 0;
    for (int replica = 0; replica < num_workers_; ++replica) {
      const float value = values[step * num_workers_ + replica];
      if (value == 0) continue;
      ++counted;
      if (value == kCounted) continue;
      wrong.push_back(absl::StrCat(table, ": the gradient of replica ", replica, " of step ", step,
                                   " has left ", value, ", expected 0 or ", kCounted));
    }
    const int least = step < steps ? required_ : 0;
    const int most = step < steps ? num_workers_ : 0;
    if (least <= counted && counted <= most) continue;
    wrong.push_back(absl::StrCat(table, ": step ", step, " of ", steps, " has counted ", counted,
                                 " gradients, expected ", least,
                                 least < most ? absl::StrCat(" to ", most) : ""));
  }
  return wrong;
}

}  // namespace lockstep::test
