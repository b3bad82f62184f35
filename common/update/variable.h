// A variable: its values by version, and its slots.
//
// Readable are the newest version, the versions before it with the same value, and the one before
// these: version s stays until step s is committed, and a gradient stamped s + 1, without which
// nothing after s + 1 is written, proves that it is. What gets no gradients (PublishUnchanged) may
// run ahead of the others and has all versions. A value is a shared, unchanging tensor; the next
// one is written into a buffer beside it. Only that of a table changes in place (table.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/tensor/tensor.h"
#include "common/update/buffer_pool.h"
#include "common/update/byte_ranges.h"
#include "common/update/low_precision_cache.h"
#include "common/update/table.h"
#include "common/update/write_observer.h"

namespace lockstep {

// A value made and not yet published.
struct NextValue {
  std::shared_ptr<const Tensor> value;
  std::shared_ptr<const Tensor> narrow;  // the value in half the width, or null
};

// One next value at a time is made (TakeBuffer, TakeCopy, slots, Publish), by one thread or by
// parts. Publish, ShowPart and the reading of versions, in any width, are guarded by the owner's
// lock; who makes the next value reads the newest one without it, because nobody else publishes.
class Variable {
 public:
  // With shared buffers the value is copied into the first of them. `make` makes the memory of
  // later values.
  Variable(std::string name, bool trainable, Tensor value, GlobalStep version,
           std::vector<Tensor> slots, std::vector<SharedBuffer> shared = {},
           TensorMaker make = OnHeap);
  // A trained one that changes row by row. `table` (not null) has this version.
  Variable(std::string name, std::shared_ptr<Table> table, GlobalStep version,
           std::vector<Tensor> slots);

  // Constant.
  const std::string& name() const { return name_; }
  bool trainable() const { return trainable_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  size_t num_bytes() const { return num_bytes_; }

  // Null where every version is a tensor of its own. Where it is not, the tensors below tell only
  // where the rows are: the table reads them.
  const std::shared_ptr<Table>& table() const { return table_; }

  GlobalStep newest_version() const { return version_; }
  const std::shared_ptr<const Tensor>& newest() const { return value_; }
  // nullptr when it is not readable, yet or any longer.
  const std::shared_ptr<const Tensor>& At(GlobalStep version) const;
  // A value of this float32 variable in half the width: `type` is float16 or bfloat16 (CHECK).
  std::shared_ptr<const Tensor> Narrowed(const std::shared_ptr<const Tensor>& value, DType type) {
    return narrow_values_.Of(value, type);
  }
  // Makes the version before the newest unreadable, and returns it, to be let go outside the lock.
  [[nodiscard]] std::shared_ptr<const Tensor> DropPrevious();
  // `next` becomes the newest version, one above.
  void Publish(NextValue next);
  // Bytes `part` of the version above the newest are in `next`, the rest of which is being made.
  void ShowPart(const NextValue& next, ByteRange part);
  // Where all of `part` has been shown of this version: what was shown. Otherwise, nulls.
  NextValue Shown(GlobalStep version, ByteRange part) const;
  // From where on a part of the version above the newest has not been shown; its end: all of it
  // has.
  uint64_t FirstMissing(GlobalStep version, ByteRange part) const;
  // The newest value becomes that of the version above, too.
  void PublishUnchanged();
  // This becomes the newest version, any number of versions above. The one before stays no longer.
  void PublishAs(GlobalStep version, std::shared_ptr<const Tensor> value);
  // The newest value becomes that of `version`, and no other version is readable.
  void RestartAt(GlobalStep version);
  // The newest value, to be overwritten in place. While nobody reads it or makes the next one.
  MutableTensorView OverwriteNewest();

  // With any contents.
  std::shared_ptr<ValueBuffer> TakeBuffer() { return pool_->Take(); }
  // For the same value in half the width, where such are pulled; otherwise null.
  std::shared_ptr<ValueBuffer> TakeNarrowBuffer() { return narrow_values_.TakeBuffer(); }
  // With the newest value, to be changed in place.
  std::shared_ptr<ValueBuffer> TakeCopy();
  // What is in these buffers, the second of which may be null, as the version after the newest.
  NextValue Finish(std::shared_ptr<ValueBuffer> value, std::shared_ptr<ValueBuffer> narrow) const;
  absl::Span<const MutableTensorView> slots() const { return slot_views_; }
  // Of the slot at this index: stays beyond the variable for as long as it is held.
  std::shared_ptr<const Tensor> slot(size_t index) const { return slots_[index]; }

  // Who hears of writes to each slot, and to the table (null without one). They outlive the
  // variable's updates. To be called before the first update.
  void SetObservers(std::vector<WriteObserver*> of_slots, WriteObserver* of_table);
  // Before these bytes of every slot are written.
  void BeforeWriteSlots(ByteRange bytes) const;
  // Before these rows of the table, and of every slot, are written.
  void BeforeWriteRows(absl::Span<const int64_t> rows) const;

 private:
  const std::string name_;
  const bool trainable_;
  const DType dtype_;
  const Shape shape_;
  const size_t num_bytes_;
  const std::shared_ptr<Table> table_;
  const std::shared_ptr<BufferPool> pool_;
  LowPrecisionCache narrow_values_;
  std::vector<std::shared_ptr<Tensor>> slots_;
  std::vector<MutableTensorView> slot_views_;
  std::vector<WriteObserver*> slot_observers_;  // by slot; empty: nobody hears of writes
  WriteObserver* table_observer_ = nullptr;

  GlobalStep version_;
  GlobalStep unchanged_since_;  // every version from here to version_ has value_
  std::shared_ptr<const Tensor> value_;
  std::shared_ptr<const Tensor> previous_;  // of unchanged_since_ - 1, or null
  NextValue unfinished_;                    // of version_ + 1, or nulls
  ByteRanges shown_;                        // of it
};

}  // namespace lockstep
