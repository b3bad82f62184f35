#include "worker/data/transform/order_streams.h"

namespace lockstep::worker {

bool RangeStream::Next(Element* element) {
  if (next_ == num_examples_) return false;
  element->assign(1, DrawnExample{.number = next_++});
  return true;
}

bool ShardStream::Next(Element* element) {
  while (input_->Next(element)) {
    const bool is_kept = place_ == index_;
    place_ = (place_ + 1) % shards_;
    if (is_kept) return true;
  }
  return false;
}

void ShardStream::Restart() {
  input_->Restart();
  place_ = 0;
}

bool RepeatStream::Next(Element* element) {
  while (count_ == 0 || finished_ < count_) {
    if (input_->Next(element)) {
      has_element_ = true;
      return true;
    }
    // An empty iteration is followed by empty ones alone.
    if (!has_element_) return false;
    if (++finished_ == count_) return false;
    has_element_ = false;
    input_->Restart();
  }
  return false;
}

void RepeatStream::Restart() {
  input_->Restart();
  finished_ = 0;
  has_element_ = false;
}

bool BatchStream::Next(Element* element) {
  element->clear();
  while (static_cast<int64_t>(element->size()) < size_ && input_->Next(&one_)) {
    element->insert(element->end(), one_.begin(), one_.end());
  }
  return drop_remainder_ ? static_cast<int64_t>(element->size()) == size_ : !element->empty();
}

}  // namespace lockstep::worker
