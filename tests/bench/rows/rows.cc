#include "tests/bench/rows/rows.h"

namespace lockstep::bench {

const std::vector<Row>& Rows() {
  static const auto* const rows = new std::vector<Row>{
      {"compute_demo_cnn", &ComputeDemoCnn},
  };
  return *rows;
}

}  // namespace lockstep::bench
