#include "ps/variable/variable.h"

#include <cstring>
#include <utility>

namespace lockstep::ps {
namespace {

void CopyRows(const Tensor& from, absl::Span<const int64_t> rows, Tensor* to) {
  if (rows.empty()) return;
  const size_t row_bytes = from.num_bytes() / static_cast<size_t>(from.shape().dim(0));
  const auto* source = static_cast<const std::byte*>(from.data());
  auto* target = static_cast<std::byte*>(to->data());
  for (const int64_t row : rows) {
    if (row_bytes > 0) std::memcpy(target + row * row_bytes, source + row * row_bytes, row_bytes);
  }
}

}  // namespace

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

std::shared_ptr<const Tensor> Variable::At(GlobalStep version) const {
  if (version >= unchanged_since_ && version <= version_) return value_;
  if (version.next() == unchanged_since_) return previous_;
  return nullptr;
}

std::shared_ptr<const Tensor> Variable::DropPrevious() { return std::exchange(previous_, nullptr); }

void Variable::Publish(NextValue next) {
  previous_ = std::exchange(value_, std::move(next.value));
  changed_rows_ = std::move(next.changed_rows);
  version_ = version_.next();
  unchanged_since_ = version_;
  if (next.narrow != nullptr) narrow_values_.Add(value_, std::move(next.narrow));
}

void Variable::PublishUnchanged() { version_ = version_.next(); }

std::unique_ptr<ValueBuffer> Variable::TakeCopy() {
  std::unique_ptr<ValueBuffer> copy = recycler_->Take();
  const bool is_one_behind = copy->version.has_value() && copy->version->next() == version_;
  if (is_one_behind && changed_rows_.has_value()) {
    CopyRows(*value_, *changed_rows_, &copy->tensor);
  } else {
    Copy(value_->view(), copy->tensor.view());
  }
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
