#include "common/checkpoint/whole_tensors.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"

namespace lockstep {
namespace {

constexpr char kPartMark = '#';

struct PartName {
  std::string whole;
  int64_t part = 0;
};

// "table#3/m" is part 3 of "table/m". nullopt: the name of a whole tensor.
std::optional<PartName> ParsePartName(absl::string_view name) {
  const size_t mark = name.rfind(kPartMark);
  if (mark == absl::string_view::npos) return std::nullopt;
  const size_t slot = std::min(name.find('/', mark), name.size());
  const absl::string_view number = name.substr(mark + 1, slot - mark - 1);
  PartName parsed;
  if (!absl::SimpleAtoi(number, &parsed.part) || number != absl::StrCat(parsed.part)) {
    return std::nullopt;
  }
  parsed.whole = absl::StrCat(name.substr(0, mark), name.substr(slot));
  return parsed;
}

using Parts = std::map<int64_t, const TensorRecord*>;

bool HaveEqualRows(const Shape& a, const Shape& b) {
  return a.rank() > 0 && a.rank() == b.rank() && a.dims().subspan(1) == b.dims().subspan(1);
}

absl::Status TooLarge(absl::string_view name) {
  return absl::DataLossError(absl::StrCat("tensor '", name, "' is too large"));
}

absl::StatusOr<WholeTensor> Join(absl::string_view name, const Parts& parts) {
  const TensorRecord& first = *parts.begin()->second;
  WholeTensor whole{first.dtype, Shape(), {}};
  int64_t rows = 0;
  for (const auto& [number, record] : parts) {
    if (number != static_cast<int64_t>(whole.parts.size())) {
      return absl::DataLossError(
          absl::StrCat("part ", whole.parts.size(), " of tensor '", name, "' is missing"));
    }
    if (record->dtype != first.dtype || !HaveEqualRows(record->shape, first.shape)) {
      return absl::DataLossError(absl::StrCat("parts of tensor '", name, "' do not fit: '",
                                              first.name, "' is ", Name(first.dtype), " ",
                                              first.shape.ToString(), ", '", record->name, "' is ",
                                              Name(record->dtype), " ", record->shape.ToString()));
    }
    whole.parts.push_back({record->name, rows, record->shape.dim(0)});
    // Parts of rows without elements take no bytes, so their number is not bounded by the files.
    const auto sum = CheckedAdd(rows, record->shape.dim(0));
    if (!sum) return TooLarge(name);
    rows = *sum;
  }
  std::vector<int64_t> dims(first.shape.dims().begin(), first.shape.dims().end());
  dims[0] = rows;
  auto shape = Shape::Create(dims);
  if (!shape.ok()) return TooLarge(name);
  whole.shape = *std::move(shape);
  return whole;
}

}  // namespace

std::vector<TensorPart>::const_iterator WholeTensor::PartWith(int64_t row) const {
  return std::partition_point(parts.begin(), parts.end(), [row](const TensorPart& part) {
    return part.first_row + part.num_rows <= row;
  });
}

WholeTensors::WholeTensors(const Manifest& manifest) {
  std::map<std::string, Parts> parts;  // by the whole's name
  for (const ShardFile& shard : manifest.shards) {
    for (const TensorRecord& tensor : shard.tensors) {
      const int64_t rows = tensor.shape.rank() == 0 ? 1 : tensor.shape.dim(0);
      wholes_.emplace(tensor.name,
                      WholeTensor{tensor.dtype, tensor.shape, {{tensor.name, 0, rows}}});
      if (const std::optional<PartName> part = ParsePartName(tensor.name)) {
        parts[part->whole].emplace(part->part, &tensor);
      }
    }
  }
  for (const auto& [name, of_name] : parts) wholes_.emplace(name, Join(name, of_name));
}

absl::StatusOr<const WholeTensor*> WholeTensors::Find(absl::string_view name) const {
  const auto found = wholes_.find(name);
  if (found == wholes_.end()) return absl::NotFoundError(absl::StrCat("no tensor '", name, "'"));
  LOCKSTEP_RETURN_IF_ERROR(found->second.status());
  return &*found->second;
}

}  // namespace lockstep
