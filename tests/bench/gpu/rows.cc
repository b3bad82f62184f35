#include "tests/bench/gpu/rows.h"

namespace lockstep::bench::gpu {

const std::vector<RowGroup>& Rows() {
  static const auto* const rows =
      new std::vector<RowGroup>{TowerRows(), ResNet50Tf32Rows(), ResNet50Bfloat16Rows(),
                                CopyRows(),  DenseRows(),        KernelRows()};
  return *rows;
}

}  // namespace lockstep::bench::gpu
