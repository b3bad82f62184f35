#include "ps/variable/variable.h"

#include <utility>

namespace lockstep::ps {
Variable::Variable(std::string name, bool trainable, Tensor value, GlobalStep version,
                   std::vector<Tensor> slots, std::vector<ValuePlace> places)
    : name_(std::move(name)),
      trainable_(trainable),
      dtype_(value.dtype()),
      shape_(value.shape()),
      num_bytes_(value.num_bytes()),
      recycler_(BufferRecycler::Create(value.dtype(), value.shape(), places)),
      narrow_values_(value.shape()),
      slots_(std::move(slots)),
      version_(version),
      unchanged_since_(version) {
  std::unique_ptr<ValueBuffer> first;
  if (places.empty()) {
    first = recycler_->Adopt(std::move(value), version);
  } else {
    first = recycler_->Take();
    Copy(std::as_const(value).view(), first->tensor.view());
    first->version = version;
  }
  value_ = recycler_->Share(std::move(first));
  for (Tensor& slot : slots_) slot_views_.push_back(slot.view());
}

Variable::Variable(std::string name, std::shared_ptr<Table> table, GlobalStep version,
                   std::vector<Tensor> slots)
    : name_(std::move(name)),
      trainable_(true),
      dtype_(table->value()->dtype()),
      shape_(table->value()->shape()),
      num_bytes_(table->value()->num_bytes()),
      table_(std::move(table)),
      recycler_(BufferRecycler::Create(dtype_, shape_)),
      narrow_values_(shape_),
      slots_(std::move(slots)),
      version_(version),
      unchanged_since_(version),
      value_(table_->value()) {
  for (Tensor& slot : slots_) slot_views_.push_back(slot.view());
}

std::shared_ptr<const Tensor> Variable::At(GlobalStep version) const {
  if (version >= unchanged_since_ && version <= version_) return value_;
  if (version.next() == unchanged_since_) return previous_;
  return nullptr;
}

std::shared_ptr<const Tensor> Variable::DropPrevious() { return std::exchange(previous_, nullptr); }

void Variable::Publish(NextValue next) {
  previous_ = std::exchange(value_, std::move(next.value));
  version_ = version_.next();
  unchanged_since_ = version_;
  if (next.narrow != nullptr) narrow_values_.Add(value_, std::move(next.narrow));
}

void Variable::PublishUnchanged() { version_ = version_.next(); }

std::unique_ptr<ValueBuffer> Variable::TakeCopy() {
  std::unique_ptr<ValueBuffer> copy = recycler_->Take();
  Copy(value_->view(), copy->tensor.view());
  return copy;
}

std::shared_ptr<const Tensor> Variable::Share(std::unique_ptr<ValueBuffer> value) {
  value->version = version_.next();
  return recycler_->Share(std::move(value));
}

std::shared_ptr<const Tensor> Variable::ShareNarrow(std::unique_ptr<ValueBuffer> narrow) {
  return narrow == nullptr ? nullptr : narrow_values_.Share(std::move(narrow));
}

}  // namespace lockstep::ps
