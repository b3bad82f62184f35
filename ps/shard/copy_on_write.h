// Snapshots of a tensor that changes in place, without a copy of all of it: a page is copied right
// before it is written for the first time since the snapshot was taken. So an update copies what it
// changes, and a checkpoint reads the rest where it lies, while training goes on.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/tensor/tensor.h"
#include "common/update/write_observer.h"

namespace lockstep::ps {

// The copied pages of one snapshot. As large as the tensor; the system gives memory to those that
// are written.
struct CopiedPages {
  explicit CopiedPages(size_t num_bytes, size_t num_pages)
      : bytes(DType::kUInt8, Shape({static_cast<int64_t>(num_bytes)})),
        is_copied(std::make_unique<std::atomic<bool>[]>(num_pages)) {}

  Tensor bytes;
  const std::unique_ptr<std::atomic<bool>[]> is_copied;  // by page
};

// Pages that the next snapshot of the tensor can use. Thread-safe.
class SparePages {
 public:
  std::unique_ptr<CopiedPages> Take() ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps one, with no page copied, and releases the others.
  void GiveBack(std::unique_ptr<CopiedPages> pages) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  std::unique_ptr<CopiedPages> pages_ ABSL_GUARDED_BY(mutex_);
};

// A tensor as it was when the snapshot was taken. Thread-safe. Keeps the tensor's memory; where the
// last reference goes, its pages become spare ones.
class TensorSnapshot {
 public:
  // Of CopyOnWrite.
  TensorSnapshot(std::shared_ptr<const Tensor> live, size_t page_bytes,
                 std::shared_ptr<SparePages> spare);
  ~TensorSnapshot();
  TensorSnapshot(const TensorSnapshot&) = delete;

  DType dtype() const { return live_->dtype(); }
  const Shape& shape() const { return live_->shape(); }

  // Copies bytes from `offset` on, which the tensor has (CHECK).
  void CopyBytes(uint64_t offset, std::span<std::byte> to) const;
  // Copies rows of `row_bytes`, in any order, one after the other.
  void CopyRows(absl::Span<const int64_t> rows, size_t row_bytes, std::byte* to) const;

 private:
  friend class CopyOnWrite;

  // Null while the page has not been copied.
  const std::byte* FindCopied(size_t page) const;
  // Copies the pages of this range that have not been copied.
  void Preserve(ByteRange bytes);
  void PreservePage(CopiedPages* pages, size_t page);
  // Those of this snapshot, which has none before the first write: a snapshot before it may be
  // released until then, and leaves pages whose memory has been touched.
  CopiedPages* MakePages() ABSL_LOCKS_EXCLUDED(pages_mutex_);
  absl::Mutex& MutexOf(size_t page) const { return mutexes_[page % mutexes_.size()]; }

  const std::shared_ptr<const Tensor> live_;
  const size_t page_bytes_;
  const size_t num_pages_;
  const std::shared_ptr<SparePages> spare_;
  absl::Mutex pages_mutex_;
  std::unique_ptr<CopiedPages> owned_pages_ ABSL_GUARDED_BY(pages_mutex_);
  std::atomic<CopiedPages*> pages_ = nullptr;  // null: no page has been copied
  // Who reads or copies a page that is not copied yet holds that of the page, and no other.
  mutable std::array<absl::Mutex, 16> mutexes_;
};

// Knows the snapshots of one tensor. Thread-safe. Locks are held while a page is copied, and
// beneath them none but those of this file. Where no snapshot is held, a write costs a relaxed
// load.
class CopyOnWrite final : public WriteObserver {
 public:
  // `page_bytes` is what is copied at a time: as much as the updates write at a time.
  CopyOnWrite(std::shared_ptr<const Tensor> live, size_t page_bytes);

  // To be called while nothing is being written; a write that comes after it sees the snapshot.
  std::shared_ptr<const TensorSnapshot> TakeSnapshot() ABSL_LOCKS_EXCLUDED(mutex_);

  void BeforeWrite(ByteRange bytes) override ABSL_LOCKS_EXCLUDED(mutex_);
  void BeforeWriteRows(absl::Span<const int64_t> rows, size_t row_bytes) override
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Snapshots = absl::InlinedVector<std::shared_ptr<TensorSnapshot>, 2>;

  // Those that somebody holds.
  Snapshots Held() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<const Tensor> live_;
  const size_t page_bytes_;
  const std::shared_ptr<SparePages> spare_ = std::make_shared<SparePages>();
  std::atomic<bool> has_snapshots_ = false;
  absl::Mutex mutex_;
  absl::InlinedVector<std::weak_ptr<TensorSnapshot>, 2> snapshots_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::ps
