// How the file of an op adds it to the table.
#pragma once

#include "worker/ops/cuda/cuda_context.h"
#include "worker/ops/cuda/ops.h"

namespace lockstep::worker::cuda {

// At namespace scope: `const Registration<&MakeAdd> kAdd;`, with a function
// `OpTable::MadeOr<Op> MakeAdd(CudaContext* context, const AddOptions& options)`. `context`
// outlives the op.
template <auto kMake>
class Registration {
 public:
  Registration() { Add(kMake); }

 private:
  template <typename Made, typename Options>
  static void Add(OpTable::MadeOr<Made> (*)(CudaContext*, const Options&)) {
    MutableOps().Add<Options>([](OpContext* context, const Options& options) {
      return kMake(static_cast<CudaContext*>(context), options);
    });
  }
};

}  // namespace lockstep::worker::cuda
