#include "common/update/table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/gather_rows.h"
#include "common/tensor/packed_rows.h"

namespace lockstep {

Table::Table(Tensor value, GlobalStep version, Keeps keeps, SeqLock* seq_lock)
    : keeps_(keeps),
      seq_lock_(seq_lock),
      row_bytes_(RowBytes(value.dtype(), value.shape())),
      view_(value.view()),
      value_(std::make_shared<const Tensor>(std::move(value))),
      version_(version),
      oldest_(version) {
  if (seq_lock_ != nullptr) seq_lock_->Publish(version.value());
}

void Table::Change::Keep(size_t begin, size_t end) const {
  if (kept_ == nullptr) return;
  GatherRows(static_cast<const std::byte*>(value_.data), row_bytes_,
             {rows_.data() + begin, end - begin}, kept_ + begin * row_bytes_);
}

void Table::MakeNext(GlobalStep version, absl::Span<const int64_t> rows,
                     absl::FunctionRef<void(const Change&)> make) {
  LOCKSTEP_CHECK(version > version_);
  Change change;
  change.value_ = view_;
  change.rows_ = rows;
  change.row_bytes_ = row_bytes_;
  if (keeps_ == kPrevious) {
    kept_rows_.assign(rows.begin(), rows.end());
    if (kept_.num_bytes() < rows.size() * row_bytes_) {
      kept_ = Tensor(DType::kUInt8, Shape({static_cast<int64_t>(rows.size() * row_bytes_)}));
    }
    change.kept_ = static_cast<std::byte*>(kept_.data());
  }
  if (seq_lock_ != nullptr) seq_lock_->BeginWriting();
  make(change);
  oldest_ = GlobalStep(version.value() - 1);
  version_ = version;
  if (seq_lock_ != nullptr) seq_lock_->Publish(version_.value());
}

void Table::RestartAt(GlobalStep version) {
  version_ = oldest_ = version;
  kept_rows_.clear();
  if (seq_lock_ != nullptr) seq_lock_->Publish(version.value());
}

Table::Holds Table::Find(GlobalStep version) const {
  if (version >= version_ || keeps_ == kNewest) return Holds::kValue;
  return version >= oldest_ ? Holds::kValueWithKept : Holds::kNothing;
}

const std::byte* Table::FindKept(int64_t row) const {
  const auto found = std::ranges::lower_bound(kept_rows_, row);
  if (found == kept_rows_.end() || *found != row) return nullptr;
  return static_cast<const std::byte*>(kept_.data()) + (found - kept_rows_.begin()) * row_bytes_;
}

bool Table::CopyRows(GlobalStep version, std::span<const int64_t> rows, std::byte* to) const {
  const Holds holds = Find(version);
  if (holds == Holds::kNothing) return false;
  GatherRows(static_cast<const std::byte*>(value_->data()), row_bytes_, rows, to);
  if (holds == Holds::kValue || row_bytes_ == 0) return true;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::byte* const kept = FindKept(rows[i]);
    if (kept != nullptr) std::memcpy(to + i * row_bytes_, kept, row_bytes_);
  }
  return true;
}

bool Table::CopyBytes(GlobalStep version, uint64_t offset, std::span<std::byte> to) const {
  LOCKSTEP_CHECK(offset + to.size() <= view_.num_bytes());
  const Holds holds = Find(version);
  if (holds == Holds::kNothing) return false;
  if (to.empty()) return true;
  std::memcpy(to.data(), static_cast<const std::byte*>(value_->data()) + offset, to.size());
  if (holds == Holds::kValue) return true;
  const uint64_t end = offset + to.size();
  for (auto row = std::ranges::lower_bound(kept_rows_, static_cast<int64_t>(offset / row_bytes_));
       row != kept_rows_.end() && *row * row_bytes_ < end; ++row) {
    const uint64_t row_begin = *row * row_bytes_;
    const uint64_t first = std::max(offset, row_begin);
    const uint64_t last = std::min(end, row_begin + row_bytes_);
    std::memcpy(to.data() + (first - offset), FindKept(*row) + (first - row_begin), last - first);
  }
  return true;
}

}  // namespace lockstep
