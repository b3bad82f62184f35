#include "tests/bench/rows/rows.h"

namespace lockstep::bench {

const std::vector<RowGroup>& Rows() {
  static const auto* const rows = new std::vector<RowGroup>{
      Alone("compute_demo_cnn", &ComputeDemoCnn),
      StepRows(/*workers=*/2),
      StepRows(/*workers=*/4),
      AllReduceRows(/*workers=*/2),
      AllReduceRows(/*workers=*/4),
      PackedAllReduceRows(),
      ManyVariablesRows(),
      StepDuringSaveRow(/*workers=*/1),
      StepDuringSaveRow(/*workers=*/2),
      SmallStepRows(),
      CopyRows(),
      SparseStepRows(),
      TransportRows(),
      ApplyRows(),
      Alone("overlap", &Overlap),
      StragglerRows(),
      Alone("straggler_per_replica", &StragglerPerReplica),
      TensorFlowLargeRows(),
      TensorFlowSmallRows(),
      TensorFlowMultiWorkerRows(),
  };
  return *rows;
}

}  // namespace lockstep::bench
