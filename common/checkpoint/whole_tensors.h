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

  bool Has(absl::string_view name) const;
  // A tensor of exactly this name, or the parts of it. NOT_FOUND: neither is there. DATA_LOSS
  // naming a part that is missing, or differs from the others in more than the number of its rows.
  absl::StatusOr<WholeTensor> Find(absl::string_view name) const;

 private:
  struct Record {
    std::string name;
    DType dtype;
    Shape shape;
  };
  std::map<std::string, Record, std::less<>> tensors_;
  std::map<std::string, std::map<int64_t, Record>, std::less<>> parts_;  // by the whole's name
};

}  // namespace lockstep
