#include "tests/bench/rows/rows.h"

namespace lockstep::bench {

const std::vector<Row>& Rows() {
  static const auto* const rows = new std::vector<Row>{
      {"compute_demo_cnn", &ComputeDemoCnn},
      {"straggler_per_replica", &StragglerPerReplica},
  };
  return *rows;
}

}  // namespace lockstep::bench
