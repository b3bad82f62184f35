#include "worker/data/transform/random_streams.h"

#include <utility>

#include "worker/data/transform/uniform_below.h"

namespace lockstep::worker {

void ShuffleStream::FillBuffer() {
  while (!input_ended_ && held_ < most_) {
    if (held_ == static_cast<int64_t>(buffer_.size())) buffer_.emplace_back();
    if (input_->Next(&buffer_[held_])) {
      ++held_;
    } else {
      input_ended_ = true;
    }
  }
}

bool ShuffleStream::Next(Element* element) {
  FillBuffer();
  if (held_ == 0) return false;
  const Philox::Block bits = random_.At(draws_++, iteration_);
  const int64_t drawn = UniformBelow(held_, bits[0], bits[1]);
  std::swap(*element, buffer_[drawn]);
  std::swap(buffer_[drawn], buffer_[--held_]);
  return true;
}

void ShuffleStream::Restart() {
  input_->Restart();
  held_ = 0;
  input_ended_ = false;
  draws_ = 0;
  ++iteration_;
}

bool NumberingStream::Next(Element* element) {
  if (!input_->Next(element)) return false;
  for (DrawnExample& example : *element) example.draw = next_++;
  return true;
}

}  // namespace lockstep::worker
