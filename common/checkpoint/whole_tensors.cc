#include "common/checkpoint/whole_tensors.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
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

bool HaveEqualRows(const Shape& a, const Shape& b) {
  return a.rank() > 0 && a.rank() == b.rank() && a.dims().subspan(1) == b.dims().subspan(1);
}

}  // namespace

WholeTensors::WholeTensors(const Manifest& manifest) {
  for (const ShardFile& shard : manifest.shards) {
    for (const TensorRecord& tensor : shard.tensors) {
      const Record record{tensor.name, tensor.dtype, tensor.shape};
      tensors_.emplace(tensor.name, record);
      if (const std::optional<PartName> part = ParsePartName(tensor.name)) {
        parts_[part->whole].emplace(part->part, record);
      }
    }
  }
}

bool WholeTensors::Has(absl::string_view name) const {
  return tensors_.find(name) != tensors_.end() || parts_.find(name) != parts_.end();
}

absl::StatusOr<WholeTensor> WholeTensors::Find(absl::string_view name) const {
  if (const auto exact = tensors_.find(name); exact != tensors_.end()) {
    const Record& record = exact->second;
    const int64_t rows = record.shape.rank() == 0 ? 1 : record.shape.dim(0);
    return WholeTensor{record.dtype, record.shape, {{record.name, 0, rows}}};
  }
  const auto split = parts_.find(name);
  if (split == parts_.end()) return absl::NotFoundError(absl::StrCat("no tensor '", name, "'"));
  const Record& first = split->second.begin()->second;
  WholeTensor whole{first.dtype, Shape(), {}};
  int64_t rows = 0;
  for (const auto& [number, record] : split->second) {
    if (number != static_cast<int64_t>(whole.parts.size())) {
      return absl::DataLossError(
          absl::StrCat("part ", whole.parts.size(), " of tensor '", name, "' is missing"));
    }
    if (record.dtype != first.dtype || !HaveEqualRows(record.shape, first.shape)) {
      return absl::DataLossError(absl::StrCat("parts of tensor '", name, "' do not fit: '",
                                              first.name, "' is ", Name(first.dtype), " ",
                                              first.shape.ToString(), ", '", record.name, "' is ",
                                              Name(record.dtype), " ", record.shape.ToString()));
    }
    whole.parts.push_back({record.name, rows, record.shape.dim(0)});
    rows += record.shape.dim(0);
  }
  std::vector<int64_t> dims(first.shape.dims().begin(), first.shape.dims().end());
  dims[0] = rows;
  auto shape = Shape::Create(dims);
  if (!shape.ok()) return absl::DataLossError(absl::StrCat("tensor '", name, "' is too large"));
  whole.shape = *std::move(shape);
  return whole;
}

}  // namespace lockstep
