// The variables of one shard as a placement declares them: what ids mean, and which pushes and
// pulls are well formed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/turns/gradient_turns.h"
#include "ps/shard/calls.h"

namespace lockstep::ps {

struct CatalogEntry {
  VariableId id;
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  Shape whole;  // of the variable of which this is a part; `shape` where it is none
  uint64_t num_bytes = 0;
  bool trainable = true;
  Initializer initializer;
  bool is_sparse = false;
  RowPart part;            // of a part; otherwise `of` is empty
  uint64_t row_bytes = 0;  // of a sparse variable
  bool is_frozen = false;
  bool is_replicated = false;            // the workers keep it
  uint32_t loss = 0;                     // that trains it, as in VariableSpec
  int turn = GradientTurns::kEveryStep;  // as GradientTurns takes it

  // Otherwise nobody waits for one.
  bool TakesGradients() const { return !is_frozen && !is_replicated; }

  // Whether it may travel as this type: its own, or of a dense float32 variable half its width.
  bool MayBe(DType type) const;
  // All of a dense variable as such a type.
  uint64_t BytesAs(DType type) const { return num_bytes / SizeOf(dtype) * SizeOf(type); }
  // Bytes of a gradient of such a type with `rows` slices, of a dense variable with all its
  // elements. nullopt: a negative number of slices, or more bytes than are counted.
  std::optional<uint64_t> GradientBytes(DType type, int64_t rows) const;
  // Of the largest gradient that the shard takes.
  uint64_t MostGradientBytes() const;
};

// `variable "conv1/kernel" (3)`, for messages.
std::string Quoted(const CatalogEntry& entry);

// A pull piece with its variable found and its size filled in.
struct ResolvedPiece {
  size_t variable = 0;
  DType type = DType::kFloat32;  // in whose bytes offset and size count
  uint64_t offset = 0;
  uint64_t size = 0;
  std::vector<int64_t> rows;  // if there are any, the piece is these; the offset is 0
  bool is_sparse = false;

  friend bool operator==(const ResolvedPiece&, const ResolvedPiece&) = default;
};

// Constant after Create. Variables are numbered from 0 in the placement's order, others' left out.
class Catalog {
 public:
  // INVALID_ARGUMENT naming the variable: ids that do not count up from 0, a name twice or empty, a
  // shard that is none, a dtype that variables cannot have; or the turns (TurnsOf).
  static absl::StatusOr<Catalog> Create(const Placement& placement, ShardIndex shard);

  size_t size() const { return entries_.size(); }
  const CatalogEntry& operator[](size_t variable) const { return entries_[variable]; }
  uint64_t num_bytes() const { return num_bytes_; }
  // In which steps the variables get gradients.
  GradientTurns gradient_turns() const;

  // INVALID_ARGUMENT: this shard has no such variable.
  absl::StatusOr<size_t> Find(VariableId id) const;
  // The variable of each piece. INVALID_ARGUMENT naming the variable, what was expected and what
  // came: unknown or twice in the message, dtype, shape, slices, range outside the gradient, a cut
  // through an index, payload of another size. Of a message that only asks, the variables alone
  // count.
  absl::StatusOr<std::vector<size_t>> ResolvePush(const PushArguments& arguments) const;
  // INVALID_ARGUMENT naming the variable, what was expected and what came: nothing asked for, an
  // unknown variable, a type that nothing is pulled as, a range outside the tensor; rows that it
  // does not have, of a variable that is not sparse, with a range beside them, or more than fit a
  // message.
  absl::StatusOr<std::vector<ResolvedPiece>> ResolvePull(const PullArguments& arguments) const;

 private:
  static constexpr size_t kElsewhere = static_cast<size_t>(-1);

  Catalog() = default;

  ShardIndex shard_;
  LossTurns turns_;
  std::vector<CatalogEntry> entries_;
  uint64_t num_bytes_ = 0;
  std::vector<size_t> index_of_id_;  // kElsewhere for variables of other shards
};

// What only the bytes of a push can tell. `arguments` have passed Catalog::ResolvePush, which
// returned `variables`. Reads the bytes of row indices, with `refuse_non_finite` all.
// INVALID_ARGUMENT naming the variable, the slice or element and what it is; with
// `refuse_non_finite` also for a piece that is cut inside an element.
absl::Status CheckContents(const Catalog& catalog, const std::vector<size_t>& variables,
                           const PushArguments& arguments, bool refuse_non_finite);

}  // namespace lockstep::ps
