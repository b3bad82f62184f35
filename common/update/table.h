// The value of a sparse variable, of which a step changes some rows: in place, so that it costs
// what it touches, and a table of many gigabytes is there once. Rows that change are copied first:
// the version before the newest stays readable, as every value's does, from these copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/tensor/seq_lock.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// Reading is thread-safe; while the next version is made nobody reads, except by the sequence lock.
class Table {
 public:
  enum Keeps {
    kPrevious,  // versions count: the newest and the one before it can be read, no earlier one
    kNewest,    // they do not: the newest is read for each of them
  };

  // `seq_lock`, or null: beside the value, for readers that no lock reaches
  // (common/tensor/seq_lock.h); the tensor's owner keeps it.
  Table(Tensor value, GlobalStep version, Keeps keeps, SeqLock* seq_lock);

  // Where the value is, and of what type and shape. Its elements are the newest version's.
  const std::shared_ptr<const Tensor>& value() const { return value_; }

  // A version in the making.
  class Change {
   public:
    const MutableTensorView& value() const { return value_; }
    // Copies rows [begin, end) of those that the change names, before they are changed. Other
    // threads may do the same with others at that time.
    void Keep(size_t begin, size_t end) const;

   private:
    friend class Table;
    MutableTensorView value_;
    absl::Span<const int64_t> rows_;
    size_t row_bytes_ = 0;
    std::byte* kept_ = nullptr;  // null: nothing is kept
  };

  // make(change) makes `version`, which is above the newest and differs from it in these rows
  // alone: ascending, each once, rows of the table. It keeps each of them before it changes it.
  // Versions between the two have the value of the lower one.
  void MakeNext(GlobalStep version, absl::Span<const int64_t> rows,
                absl::FunctionRef<void(const Change&)> make);

  // The newest version becomes `version`, and no other one is readable.
  void RestartAt(GlobalStep version);
  // The newest version, to be overwritten in place. While nobody reads it or makes the next one.
  const MutableTensorView& Overwrite() const { return view_; }

  // Copies rows of `version`, in any order, one after the other; or bytes of the whole value. One
  // above the newest is a step's that left the table as it was: whether there is such a version,
  // the variable knows. False when it is not readable any longer: the copied bytes are undefined.
  bool CopyRows(GlobalStep version, std::span<const int64_t> rows, std::byte* to) const;
  bool CopyBytes(GlobalStep version, uint64_t offset, std::span<std::byte> to) const;

 private:
  enum class Holds { kNothing, kValue, kValueWithKept };

  Holds Find(GlobalStep version) const;
  // Where the kept copy of a row is; nullptr: it has not changed.
  const std::byte* FindKept(int64_t row) const;

  const Keeps keeps_;
  SeqLock* const seq_lock_;
  const size_t row_bytes_;
  const MutableTensorView view_;  // of the value
  const std::shared_ptr<const Tensor> value_;

  GlobalStep version_;
  GlobalStep oldest_;  // that is readable where versions count
  // Of the version before: the rows in which the newest differs, with room for more.
  std::vector<int64_t> kept_rows_;
  Tensor kept_;
};

}  // namespace lockstep
