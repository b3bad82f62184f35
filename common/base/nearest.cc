#include "common/base/nearest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"

namespace lockstep {
namespace {

// Beyond this many letters a name is compared by its beginning: what a user typed has no bound.
constexpr size_t kMaxLength = 128;

}  // namespace

int EditDistance(absl::string_view a, absl::string_view b) {
  const std::string x = absl::AsciiStrToLower(a.substr(0, kMaxLength));
  const std::string y = absl::AsciiStrToLower(b.substr(0, kMaxLength));
  std::vector<std::vector<int>> cost(x.size() + 1, std::vector<int>(y.size() + 1));
  for (size_t i = 0; i <= x.size(); ++i) cost[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= y.size(); ++j) cost[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= x.size(); ++i) {
    for (size_t j = 1; j <= y.size(); ++j) {
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                             cost[i - 1][j - 1] + (x[i - 1] == y[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[x.size()][y.size()];
}

std::vector<std::string> NearestFirst(absl::string_view wrong,
                                      absl::Span<const std::string> known) {
  std::vector<std::pair<int, std::string>> ranked;
  for (const std::string& name : known) ranked.emplace_back(EditDistance(wrong, name), name);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [distance, name] : ranked) names.push_back(std::move(name));
  return names;
}

std::string Nearest(absl::string_view wrong, absl::Span<const std::string> known) {
  if (known.empty()) return "";
  std::string best = NearestFirst(wrong, known).front();
  const size_t longer = std::min(kMaxLength, std::max(wrong.size(), best.size()));
  return EditDistance(wrong, best) <= std::max<int>(2, static_cast<int>(longer) / 3) ? best : "";
}

}  // namespace lockstep
