// Registration adds an op to the table. The file of the op declares one.
#pragma once

#include "absl/strings/str_cat.h"
#include "worker/ops/cuda/cuda_context.h"
#include "worker/ops/cuda/ops.h"

namespace lockstep::worker::cuda {

// At namespace scope: `const Registration<&MakeLstm> kLstm;`, with a function
// `OpTable::MadeOr<Op> MakeLstm(CudaContext* context, const LstmOptions& options)`. `context`
// outlives the op. A second function makes the ops whose OpOptions::type is bfloat16.
template <auto kMake, auto... kMakeBfloat16>
class Registration {
 public:
  Registration() { Add(kMake); }

 private:
  template <typename Made, typename Options>
  static void Add(OpTable::MadeOr<Made> (*)(CudaContext*, const Options&)) {
    MutableOps().Add<Options>([](OpContext* context, const Options& options) {
      return Make(static_cast<CudaContext*>(context), options);
    });
  }

  template <typename Options>
  static OpTable::MadeOr<typename Options::Made> Make(CudaContext* context,
                                                      const Options& options) {
    if constexpr (requires { options.type; }) {
      if (options.type == DType::kBFloat16) return MakeBfloat16(context, options);
    }
    return kMake(context, options);
  }
  template <typename Options>
  static OpTable::MadeOr<typename Options::Made> MakeBfloat16(CudaContext* context,
                                                              const Options& options) {
    if constexpr (sizeof...(kMakeBfloat16) > 0) {
      return (kMakeBfloat16(context, options), ...);
    } else {
      return absl::UnimplementedError(
          absl::StrCat("a GPU has no op \"", Options::kKind, "\" in bfloat16"));
    }
  }
};

}  // namespace lockstep::worker::cuda
