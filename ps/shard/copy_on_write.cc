#include "ps/shard/copy_on_write.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/non_temporal_copy.h"

namespace lockstep::ps {

std::unique_ptr<CopiedPages> SparePages::Take() {
  absl::MutexLock lock(&mutex_);
  return std::move(pages_);
}

void SparePages::GiveBack(std::unique_ptr<CopiedPages> pages) {
  absl::MutexLock lock(&mutex_);
  if (pages_ == nullptr) pages_.swap(pages);
}

TensorSnapshot::TensorSnapshot(std::shared_ptr<const Tensor> live, size_t page_bytes,
                               std::shared_ptr<SparePages> spare)
    : live_(std::move(live)),
      page_bytes_(page_bytes),
      num_pages_((live_->num_bytes() + page_bytes - 1) / page_bytes),
      spare_(std::move(spare)) {}

TensorSnapshot::~TensorSnapshot() {
  CopiedPages* const pages = pages_.load(std::memory_order_acquire);
  if (pages == nullptr) return;
  for (size_t page = 0; page < num_pages_; ++page) {
    pages->is_copied[page].store(false, std::memory_order_relaxed);
  }
  absl::MutexLock lock(&pages_mutex_);
  spare_->GiveBack(std::move(owned_pages_));
}

void TensorSnapshot::CopyBytes(uint64_t offset, std::span<std::byte> to) const {
  LOCKSTEP_CHECK(offset <= live_->num_bytes() && to.size() <= live_->num_bytes() - offset);
  const auto* const live = static_cast<const std::byte*>(live_->data());
  while (!to.empty()) {
    const size_t page = offset / page_bytes_;
    const size_t size = std::min<size_t>(to.size(), (page + 1) * page_bytes_ - offset);
    const std::byte* copied = FindCopied(page);
    if (copied == nullptr) {
      // Nobody writes the page before it is copied, for which this lock is needed.
      absl::MutexLock lock(&MutexOf(page));
      copied = FindCopied(page);
      if (copied == nullptr) std::memcpy(to.data(), live + offset, size);
    }
    if (copied != nullptr) std::memcpy(to.data(), copied + (offset - page * page_bytes_), size);
    offset += size;
    to = to.subspan(size);
  }
}

const std::byte* TensorSnapshot::FindCopied(size_t page) const {
  const CopiedPages* const pages = pages_.load(std::memory_order_acquire);
  if (pages == nullptr || !pages->is_copied[page].load(std::memory_order_acquire)) return nullptr;
  return static_cast<const std::byte*>(pages->bytes.data()) + page * page_bytes_;
}

void TensorSnapshot::CopyRows(absl::Span<const int64_t> rows, size_t row_bytes,
                              std::byte* to) const {
  for (const int64_t row : rows) {
    CopyBytes(static_cast<uint64_t>(row) * row_bytes, {to, row_bytes});
    to += row_bytes;
  }
}

void TensorSnapshot::Preserve(ByteRange bytes) {
  if (bytes.begin >= bytes.end) return;
  CopiedPages* const pages = MakePages();
  const size_t last = (bytes.end - 1) / page_bytes_;
  for (size_t page = bytes.begin / page_bytes_; page <= last; ++page) PreservePage(pages, page);
}

CopiedPages* TensorSnapshot::MakePages() {
  CopiedPages* pages = pages_.load(std::memory_order_acquire);
  if (pages != nullptr) return pages;
  absl::MutexLock lock(&pages_mutex_);
  if (owned_pages_ == nullptr) {
    owned_pages_ = spare_->Take();
    if (owned_pages_ == nullptr) {
      owned_pages_ = std::make_unique<CopiedPages>(live_->num_bytes(), num_pages_);
    }
    pages_.store(owned_pages_.get(), std::memory_order_release);
  }
  return owned_pages_.get();
}

void TensorSnapshot::PreservePage(CopiedPages* pages, size_t page) {
  std::atomic<bool>& is_copied = pages->is_copied[page];
  if (is_copied.load(std::memory_order_acquire)) return;
  absl::MutexLock lock(&MutexOf(page));
  if (is_copied.load(std::memory_order_relaxed)) return;
  const size_t begin = page * page_bytes_;
  const size_t size = std::min(page_bytes_, live_->num_bytes() - begin);
  CopyFragment(static_cast<std::byte*>(pages->bytes.data()) + begin,
               static_cast<const std::byte*>(live_->data()) + begin, size, size);
  if (size >= kStreamedBytes) FlushStreams();
  is_copied.store(true, std::memory_order_release);
}

CopyOnWrite::CopyOnWrite(std::shared_ptr<const Tensor> live, size_t page_bytes)
    : live_(std::move(live)), page_bytes_(page_bytes) {
  LOCKSTEP_CHECK(page_bytes > 0);
}

std::shared_ptr<const TensorSnapshot> CopyOnWrite::TakeSnapshot() {
  auto snapshot = std::make_shared<TensorSnapshot>(live_, page_bytes_, spare_);
  absl::MutexLock lock(&mutex_);
  const auto is_released = [](const auto& one) { return one.expired(); };
  snapshots_.erase(std::remove_if(snapshots_.begin(), snapshots_.end(), is_released),
                   snapshots_.end());
  snapshots_.push_back(snapshot);
  has_snapshots_.store(true, std::memory_order_relaxed);
  return snapshot;
}

CopyOnWrite::Snapshots CopyOnWrite::Held() {
  Snapshots held;
  if (!has_snapshots_.load(std::memory_order_relaxed)) return held;
  absl::MutexLock lock(&mutex_);
  for (const auto& snapshot : snapshots_) {
    if (auto one = snapshot.lock()) held.push_back(std::move(one));
  }
  if (held.size() < snapshots_.size()) {
    snapshots_.assign(held.begin(), held.end());
    has_snapshots_.store(!held.empty(), std::memory_order_relaxed);
  }
  return held;
}

void CopyOnWrite::BeforeWrite(ByteRange bytes) {
  for (const auto& snapshot : Held()) snapshot->Preserve(bytes);
}

void CopyOnWrite::BeforeWriteRows(absl::Span<const int64_t> rows, size_t row_bytes) {
  for (const auto& snapshot : Held()) {
    for (const int64_t row : rows) {
      const uint64_t begin = static_cast<uint64_t>(row) * row_bytes;
      snapshot->Preserve({begin, begin + row_bytes});
    }
  }
}

}  // namespace lockstep::ps
