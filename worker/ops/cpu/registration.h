// Registration adds an op to the table. The file of the op declares one.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "worker/ops/cpu/onednn.h"
#include "worker/ops/cpu/ops.h"
#include "worker/ops/op_table.h"

namespace lockstep::worker::cpu {

// At namespace scope: `const Registration<&MakeDense> kDense;`, with a function
// `std::unique_ptr<Op> MakeDense(OneDnn* onednn, const DenseOptions& options)`, which throws what
// oneDNN throws, or one that returns OpTable::MadeOr<Op>. `onednn` outlives the op.
template <auto kMake>
class Registration {
 public:
  Registration() { Add(kMake); }

 private:
  template <typename Made, typename Options>
  static void Add(std::unique_ptr<Made> (*)(OneDnn*, const Options&)) {
    AddTo<Made, Options>();
  }
  template <typename Made, typename Options>
  static void Add(absl::StatusOr<std::unique_ptr<Made>> (*)(OneDnn*, const Options&)) {
    AddTo<Made, Options>();
  }
  template <typename Made, typename Options>
  static void AddTo() {
    MutableOps().Add<Options>([](OpContext* context, const Options& options) {
      return CatchErrors<OpTable::MadeOr<Made>>(
          Options::kKind, [&] { return kMake(static_cast<OneDnn*>(context), options); });
    });
  }
};

}  // namespace lockstep::worker::cpu
