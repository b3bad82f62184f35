#include "ps/shard/catalog.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/tensor/half_width.h"
#include "common/tensor/packed_rows.h"
#include "common/tensor_proto/convert.h"
#include "common/tensor_proto/turns.h"

namespace lockstep::ps {
namespace {

// A sparse gradient is at most as large as one with every row of the variable, or as this: many
// slices of few rows are nothing unusual.
constexpr uint64_t kSmallGradient = uint64_t{64} << 20;

// The most bytes of rows, averages and slots that one pull may name. They are copied, and no
// message is larger (common/rpc/limits.h).
constexpr uint64_t kMostCopiedBytes = uint64_t{16} << 20;

// Of all variables of a shard: replies count them as int64.
constexpr uint64_t kMostBytes = std::numeric_limits<int64_t>::max();

// As many variables of a push are compared with each other.
constexpr size_t kFewPieces = 16;

// Whether [offset, offset + size) lies in [0, whole).
bool IsInside(uint64_t offset, uint64_t size, uint64_t whole) {
  return offset <= whole && size <= whole - offset;
}

absl::Status OutOfRange(const CatalogEntry& entry, uint64_t whole, uint64_t offset, uint64_t size) {
  return absl::InvalidArgumentError(absl::StrCat(Quoted(entry), ": expected bytes in [0, ", whole,
                                                 "), got ", size, " bytes from offset ", offset));
}

// An edge of a piece at `at` bytes.
absl::Status CheckCut(const CatalogEntry& entry, const PushPiece& piece, uint64_t at) {
  const uint64_t index_bytes = static_cast<uint64_t>(piece.rows) * kRowIndexBytes;
  if (at >= index_bytes || at % kRowIndexBytes == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Quoted(entry), ": expected pieces of whole row ",
                                                 "indices, got one that is cut at byte ", at));
}

// A sparse mean keeps the rows of all its gradients where they do not meet in order (SparseSum).
bool IsTooLarge(const CatalogEntry& entry, uint64_t bytes, size_t num_gradients) {
  const auto most = CheckedMultiplyBytes(num_gradients, entry.MostGradientBytes());
  return entry.is_sparse && most.has_value() && bytes > *most;
}

// `num_gradients`: of which it is the mean, or 1.
absl::Status CheckPiece(const CatalogEntry& entry, const PushPiece& piece, size_t num_gradients) {
  if (entry.is_frozen) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(entry), ": it is frozen: expected no gradient, got one"));
  }
  if (entry.is_replicated) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(entry),
                     ": the workers keep it (strategy replicated): expected no gradient, got one"));
  }
  if (!entry.MayBe(piece.dtype)) {
    const bool has_narrower = entry.MayBe(DType::kBFloat16);
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(entry), ": expected dtype ", Name(entry.dtype),
                     has_narrower ? ", bfloat16 or float16" : "", ", got ", Name(piece.dtype)));
  }
  if (!(piece.shape == entry.shape)) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(entry), ": expected shape ",
                                                   entry.shape.ToString(), ", got ",
                                                   piece.shape.ToString()));
  }
  if (!entry.is_sparse && piece.rows != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(entry), ": expected a dense gradient, got ", piece.rows, " rows"));
  }
  const std::optional<uint64_t> whole = entry.GradientBytes(piece.dtype, piece.rows);
  if (!whole.has_value() || IsTooLarge(entry, *whole, num_gradients)) {
    const std::string expected =
        num_gradients == 1
            ? "a sparse gradient that is"
            : absl::StrCat("the mean of ", num_gradients, " sparse gradients that are each");
    return absl::InvalidArgumentError(absl::StrCat(Quoted(entry), ": expected ", expected,
                                                   " no larger than all ", entry.shape.dim(0),
                                                   " rows, got ", piece.rows, " rows. Merge them"));
  }
  if (!IsInside(piece.offset, piece.size, *whole)) {
    return OutOfRange(entry, *whole, piece.offset, piece.size);
  }
  if (piece.size == 0 && *whole != 0) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(entry), ": expected bytes, got none"));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckCut(entry, piece, piece.offset));
  return CheckCut(entry, piece, piece.offset + piece.size);
}

absl::Status CheckPulledRows(const CatalogEntry& entry, const PullPiece& piece) {
  const auto wrong = [&entry](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(entry), ": ", what));
  };
  if (!entry.is_sparse) {
    return wrong(absl::StrCat("expected a range of bytes, got ", piece.rows.size(),
                              " rows: it is not sparse"));
  }
  if (piece.offset != 0 || piece.size != 0) {
    return wrong(absl::StrCat("expected rows or a range of bytes, got ", piece.rows.size(),
                              " rows and ", piece.size, " bytes from offset ", piece.offset));
  }
  const int64_t num_rows = entry.shape.dim(0);
  for (const int64_t row : piece.rows) {
    if (row >= 0 && row < num_rows) continue;
    return wrong(absl::StrCat("expected rows in [0, ", num_rows, "), got ", row));
  }
  return absl::OkStatus();
}

// Subtracts `count` times `bytes` from `left`, which the pull may still name.
absl::Status TakeRoom(const CatalogEntry& entry, uint64_t count, uint64_t bytes, uint64_t* left) {
  if (bytes > 0 && count > *left / bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(entry), ": expected a pull of at most ", kMostCopiedBytes,
                     " bytes of rows, averages or slots, got ", count, " times ", bytes,
                     " bytes where room for ", *left, " bytes was left. Pull them in several"));
  }
  *left -= count * bytes;
  return absl::OkStatus();
}

absl::Status CheckSparse(const VariableSpec& spec, const Shape& shape, const std::string& what) {
  if (spec.sparse() && (shape.rank() == 0 || !spec.trainable())) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": sparse: expected a trained variable with rows, got ",
                     spec.trainable() ? "a scalar" : "a statistic"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string Quoted(const CatalogEntry& entry) {
  return absl::StrCat("variable \"", entry.name, "\" (", entry.id.value(), ")");
}

bool CatalogEntry::MayBe(DType type) const {
  return type == dtype || (IsHalfWidth(type) && dtype == DType::kFloat32 && !is_sparse);
}

std::optional<uint64_t> CatalogEntry::GradientBytes(DType type, int64_t rows) const {
  if (!is_sparse) return BytesAs(type);
  return PackedBytes(rows, row_bytes);
}

uint64_t CatalogEntry::MostGradientBytes() const {
  if (!is_sparse) return num_bytes;
  const std::optional<uint64_t> all_rows = PackedBytes(shape.dim(0), row_bytes);
  return std::max(kSmallGradient, all_rows.value_or(kSmallGradient));
}

absl::StatusOr<Catalog> Catalog::Create(const Placement& placement, ShardIndex shard) {
  if (shard.value() >= placement.shards()) {
    return absl::InvalidArgumentError(absl::StrCat("the placement has ", placement.shards(),
                                                   " shards; this is shard ", shard.value()));
  }
  Catalog catalog;
  catalog.shard_ = shard;
  LOCKSTEP_ASSIGN_OR_RETURN(catalog.turns_, TurnsOf(placement));
  absl::flat_hash_set<std::string> names;
  for (const VariableSpec& spec : placement.variables()) {
    if (spec.name().size() > limits::kMaxVariableNameBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable ", spec.id(), ": expected a name of at most ",
                       limits::kMaxVariableNameBytes, " bytes, got ", spec.name().size()));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const VariableType type, TypeOf(spec));
    const std::string what = absl::StrCat("variable \"", spec.name(), "\" (", spec.id(), ")");
    if (spec.id() != catalog.index_of_id_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": expected id ", catalog.index_of_id_.size()));
    }
    if (spec.name().empty() || !names.insert(spec.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": expected a name of its own"));
    }
    if (spec.shard() >= placement.shards()) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": placed on shard ", spec.shard(), " of ", placement.shards()));
    }
    if (type.dtype != DType::kFloat32 && type.dtype != DType::kFloat64) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": expected dtype float32 or float64, got ", Name(type.dtype)));
    }
    LOCKSTEP_RETURN_IF_ERROR(CheckSparse(spec, type.shape, what));
    if (spec.shard() != shard.value()) {
      catalog.index_of_id_.push_back(kElsewhere);
      continue;
    }
    CatalogEntry entry{.id = VariableId(spec.id()),
                       .name = spec.name(),
                       .dtype = type.dtype,
                       .shape = type.shape,
                       .whole = type.whole,
                       .trainable = spec.trainable(),
                       .initializer = spec.initializer(),
                       .is_sparse = spec.sparse(),
                       .part = spec.part(),
                       .is_frozen = spec.frozen(),
                       .is_replicated = spec.replicated(),
                       .loss = spec.loss(),
                       .turn = TurnOf(spec)};
    if (entry.is_sparse) entry.row_bytes = RowBytes(type.dtype, type.shape);
    entry.num_bytes = static_cast<uint64_t>(type.shape.num_elements()) * SizeOf(type.dtype);
    const auto sum = CheckedAddBytes(catalog.num_bytes_, entry.num_bytes);
    if (!sum.has_value() || *sum > kMostBytes) {
      return absl::FailedPreconditionError(absl::StrCat(
          what, ": with its ", entry.num_bytes, " bytes the variables of shard ", shard.value(),
          " have more than ", kMostBytes, ". Remedy: a smaller model, or more ps"));
    }
    catalog.num_bytes_ = *sum;
    catalog.index_of_id_.push_back(catalog.entries_.size());
    catalog.entries_.push_back(std::move(entry));
  }
  return catalog;
}

GradientTurns Catalog::gradient_turns() const {
  std::vector<int> turn_of;
  for (const CatalogEntry& entry : entries_) turn_of.push_back(entry.turn);
  return GradientTurns(turns_, std::move(turn_of));
}

absl::StatusOr<std::vector<size_t>> Catalog::ResolvePush(const PushArguments& arguments) const {
  std::vector<size_t> variables;
  variables.reserve(arguments.pieces.size());
  // Of the variables so far, where there are too many to look through them for each.
  std::vector<bool> seen(arguments.pieces.size() > kFewPieces ? entries_.size() : 0);
  const auto is_seen = [&](size_t variable) {
    if (!seen.empty()) return static_cast<bool>(seen[variable]);
    return std::find(variables.begin(), variables.end(), variable) != variables.end();
  };
  const size_t num_gradients =
      arguments.mean.has_value() ? std::max<size_t>(1, arguments.mean->mean_of.size()) : 1;
  uint64_t expected = 0;
  for (const PushPiece& piece : arguments.pieces) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t variable, Find(piece.variable));
    const CatalogEntry& entry = entries_[variable];
    if (is_seen(variable)) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(entry), ": twice in one message"));
    }
    if (!arguments.ask) {
      LOCKSTEP_RETURN_IF_ERROR(CheckPiece(entry, piece, num_gradients));
      // No payload has as many bytes as the largest number.
      expected =
          CheckedAddBytes(expected, piece.size).value_or(std::numeric_limits<uint64_t>::max());
    }
    if (!seen.empty()) seen[variable] = true;
    variables.push_back(variable);
  }
  const uint64_t got = arguments.tensors.num_bytes();
  if (got == expected) return variables;
  const std::string where = arguments.pieces.empty()
                                ? std::string("a push without pieces")
                                : absl::StrCat("the message of ", arguments.pieces.size(),
                                               " pieces from ", Quoted(entries_[variables[0]]));
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": expected a payload of ", expected, " bytes, got ", got));
}

absl::StatusOr<std::vector<ResolvedPiece>> Catalog::ResolvePull(
    const PullArguments& arguments) const {
  if (arguments.pieces.empty()) return absl::InvalidArgumentError("the pull asks for no variable");
  if (arguments.wire_type != DType::kFloat32 && !IsHalfWidth(arguments.wire_type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the pull's wire_type: expected float32, bfloat16 or float16, got ",
                     Name(arguments.wire_type)));
  }
  std::vector<ResolvedPiece> pieces;
  pieces.reserve(arguments.pieces.size());
  uint64_t bytes_left = kMostCopiedBytes;
  const bool copies_all = arguments.averages || !arguments.slot.empty();
  for (const PullPiece& piece : arguments.pieces) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t variable, Find(piece.variable));
    const CatalogEntry& entry = entries_[variable];
    if (!piece.rows.empty()) {
      LOCKSTEP_RETURN_IF_ERROR(CheckPulledRows(entry, piece));
      const uint64_t num_rows = piece.rows.size();
      LOCKSTEP_RETURN_IF_ERROR(TakeRoom(entry, num_rows, entry.row_bytes, &bytes_left));
      pieces.push_back({variable, entry.dtype, 0, num_rows * entry.row_bytes, piece.rows, true});
      continue;
    }
    const DType type = entry.MayBe(arguments.wire_type) ? arguments.wire_type : entry.dtype;
    const uint64_t whole = entry.BytesAs(type);
    if (!IsInside(piece.offset, piece.size, whole)) {
      return OutOfRange(entry, whole, piece.offset, piece.size);
    }
    const uint64_t size = piece.size == 0 ? whole - piece.offset : piece.size;
    if (entry.is_sparse || copies_all) {
      LOCKSTEP_RETURN_IF_ERROR(TakeRoom(entry, size, 1, &bytes_left));
    }
    pieces.push_back({variable, type, piece.offset, size, {}, entry.is_sparse});
  }
  return pieces;
}

absl::StatusOr<size_t> Catalog::Find(VariableId id) const {
  if (id.value() >= index_of_id_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("variable ", id.value(),
                                                   ": unknown; ids go from 0 to ",
                                                   index_of_id_.size(), " exclusive"));
  }
  const size_t variable = index_of_id_[id.value()];
  if (variable == kElsewhere) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable ", id.value(), ": lives on another shard than this one (", shard_.value(), ")"));
  }
  return variable;
}

}  // namespace lockstep::ps
