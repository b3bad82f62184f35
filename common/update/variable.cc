#include "common/update/variable.h"

#include <utility>

#include "common/tensor/packed_rows.h"

namespace lockstep {
namespace {

std::vector<std::shared_ptr<Tensor>> Shared(std::vector<Tensor> tensors) {
  std::vector<std::shared_ptr<Tensor>> shared;
  for (Tensor& tensor : tensors) shared.push_back(std::make_shared<Tensor>(std::move(tensor)));
  return shared;
}

}  // namespace

Variable::Variable(std::string name, bool trainable, Tensor value, GlobalStep version,
                   std::vector<Tensor> slots, std::vector<SharedBuffer> shared, TensorMaker make)
    : name_(std::move(name)),
      trainable_(trainable),
      dtype_(value.dtype()),
      shape_(value.shape()),
      num_bytes_(value.num_bytes()),
      pool_(BufferPool::Create(value.dtype(), value.shape(), shared, std::move(make))),
      narrow_values_(value.shape()),
      slots_(Shared(std::move(slots))),
      version_(version),
      unchanged_since_(version) {
  std::shared_ptr<ValueBuffer> first;
  if (shared.empty()) {
    first = pool_->Adopt(std::move(value), version);
  } else {
    first = pool_->Take();
    Copy(std::as_const(value).view(), first->tensor.view());
    first->version = version;
  }
  value_ = BufferPool::Share(std::move(first));
  for (const auto& slot : slots_) slot_views_.push_back(slot->view());
}

Variable::Variable(std::string name, std::shared_ptr<Table> table, GlobalStep version,
                   std::vector<Tensor> slots)
    : name_(std::move(name)),
      trainable_(true),
      dtype_(table->value()->dtype()),
      shape_(table->value()->shape()),
      num_bytes_(table->value()->num_bytes()),
      table_(std::move(table)),
      pool_(BufferPool::Create(dtype_, shape_)),
      narrow_values_(shape_),
      slots_(Shared(std::move(slots))),
      version_(version),
      unchanged_since_(version),
      value_(table_->value()) {
  for (const auto& slot : slots_) slot_views_.push_back(slot->view());
}

const std::shared_ptr<const Tensor>& Variable::At(GlobalStep version) const {
  static const auto& none = *new std::shared_ptr<const Tensor>();
  if (version >= unchanged_since_ && version <= version_) return value_;
  if (version.next() == unchanged_since_) return previous_;
  return none;
}

std::shared_ptr<const Tensor> Variable::DropPrevious() { return std::exchange(previous_, nullptr); }

void Variable::ShowPart(const NextValue& next, ByteRange part) {
  unfinished_ = next;
  shown_.Claim(part.begin, part.end);
}

NextValue Variable::Shown(GlobalStep version, ByteRange part) const {
  if (version != version_.next() || !shown_.Covers(part.begin, part.end)) return {};
  return unfinished_;
}

uint64_t Variable::FirstMissing(GlobalStep version, ByteRange part) const {
  return version == version_.next() ? shown_.FirstGap(part.begin, part.end) : part.begin;
}

void Variable::Publish(NextValue next) {
  unfinished_ = {};
  shown_.Clear();
  previous_ = std::exchange(value_, std::move(next.value));
  version_ = version_.next();
  unchanged_since_ = version_;
  if (next.narrow != nullptr) narrow_values_.Add(value_, std::move(next.narrow));
}

void Variable::PublishUnchanged() { version_ = version_.next(); }

void Variable::PublishAs(GlobalStep version, std::shared_ptr<const Tensor> value) {
  previous_ = nullptr;
  value_ = std::move(value);
  version_ = unchanged_since_ = version;
}

void Variable::RestartAt(GlobalStep version) {
  PublishAs(version, value_);
  if (table_ != nullptr) table_->RestartAt(version);
}

MutableTensorView Variable::OverwriteNewest() {
  if (table_ != nullptr) return table_->Overwrite();
  // Of a buffer of the pool, which is not constant.
  return {dtype_, shape_, const_cast<void*>(value_->data())};
}

void Variable::SetObservers(std::vector<WriteObserver*> of_slots, WriteObserver* of_table) {
  slot_observers_ = std::move(of_slots);
  table_observer_ = of_table;
}

void Variable::BeforeWriteSlots(ByteRange bytes) const {
  for (WriteObserver* const observer : slot_observers_) observer->BeforeWrite(bytes);
}

void Variable::BeforeWriteRows(absl::Span<const int64_t> rows) const {
  if (table_observer_ == nullptr && slot_observers_.empty()) return;
  const size_t row_bytes = RowBytes(dtype_, shape_);
  if (table_observer_ != nullptr) table_observer_->BeforeWriteRows(rows, row_bytes);
  for (WriteObserver* const observer : slot_observers_) {
    observer->BeforeWriteRows(rows, row_bytes);
  }
}

std::shared_ptr<ValueBuffer> Variable::TakeCopy() {
  std::shared_ptr<ValueBuffer> copy = pool_->Take();
  Copy(value_->view(), copy->tensor.view());
  return copy;
}

NextValue Variable::Finish(std::shared_ptr<ValueBuffer> value,
                           std::shared_ptr<ValueBuffer> narrow) const {
  value->version = version_.next();
  return {BufferPool::Share(std::move(value)),
          narrow == nullptr ? nullptr : BufferPool::Share(std::move(narrow))};
}

}  // namespace lockstep
