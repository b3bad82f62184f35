#include "tests/bench/row.h"

#include <utility>

#include "common/base/annotate.h"

namespace lockstep::bench {

std::optional<double> RowResult::ratio() const {
  if (!peer_value.has_value() || *peer_value <= 0 || value <= 0) return std::nullopt;
  return higher_is_better ? value / *peer_value : *peer_value / value;
}

std::optional<bool> RowResult::met() const {
  if (!target.has_value()) return std::nullopt;
  return ratio().has_value() && *ratio() >= *target;
}

RowGroup Alone(const std::string& name,
               std::function<absl::StatusOr<RowResult>(const BenchOptions&)> run) {
  return {{name},
          [name, run = std::move(run)](const BenchOptions& options, const std::vector<std::string>&,
                                       std::vector<RowResult>* results) {
            absl::StatusOr<RowResult> result = run(options);
            if (!result.ok()) return Annotate(result.status(), name);
            result->name = name;
            results->push_back(*std::move(result));
            return absl::OkStatus();
          }};
}

}  // namespace lockstep::bench
