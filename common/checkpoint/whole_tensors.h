// The tensors of a checkpoint by the names that a model gives them. A variable whose rows are split
// over shards is there in parts: "table#0", "table#1", ... with slots "table#0/m", "table#1/m",
// ...; together, in this order, they are "table" and "table/m".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace lockstep {

struct Manifest;
struct TensorRecord;

struct TensorPart {
  std::string name;  // of the tensor in the checkpoint
  int64_t first_row = 0;
  int64_t num_rows = 0;
};

struct WholeTensor {
  // The first of the parts that end after this row; parts' end where none does.
  std::vector<TensorPart>::const_iterator PartWith(int64_t row) const;

  DType dtype = DType::kFloat32;
  Shape shape;
  std::vector<TensorPart> parts;  // in the order of their rows; one, which is all, if not split
};

// Constant; knows names, types and shapes alone.
class WholeTensors {
 public:
  WholeTensors() = default;
  // The manifest need not stay.
  explicit WholeTensors(const Manifest& manifest);

  bool Has(absl::string_view name) const { return wholes_.find(name) != wholes_.end(); }
  // A tensor of exactly this name, or the parts of it; it stays as long as this. NOT_FOUND: neither
  // is there. DATA_LOSS naming a part that is missing, or differs from the others in more than the
  // number of its rows. Costs the same however many parts there are.
  absl::StatusOr<const WholeTensor*> Find(absl::string_view name) const;

 private:
  std::map<std::string, absl::StatusOr<WholeTensor>, std::less<>> wholes_;
};

}  // namespace lockstep
