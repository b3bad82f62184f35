#include "ps/variable/variable.h"

#include <utility>

namespace lockstep::ps {

Variable::Variable(std::string name, bool trainable, Tensor value, GlobalStep version,
                   std::vector<Tensor> slots)
    : name_(std::move(name)),
      trainable_(trainable),
      dtype_(value.dtype()),
      shape_(value.shape()),
      num_bytes_(value.num_bytes()),
      recycler_(BufferRecycler::Create(value.dtype(), value.shape())),
      slots_(std::move(slots)),
      version_(version),
      value_(recycler_->Share(std::make_unique<Tensor>(std::move(value)))) {
  for (Tensor& slot : slots_) slot_views_.push_back(slot.view());
}

std::shared_ptr<const Tensor> Variable::At(GlobalStep version) const {
  if (version == version_) return value_;
  if (version.next() == version_) return previous_;
  return nullptr;
}

std::shared_ptr<const Tensor> Variable::DropPrevious() { return std::exchange(previous_, nullptr); }

void Variable::Publish(std::shared_ptr<const Tensor> value) {
  previous_ = std::exchange(value_, std::move(value));
  version_ = version_.next();
}

}  // namespace lockstep::ps
