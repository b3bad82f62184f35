// Streams with a random choice: functions of (seed, iteration, place).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/philox.h"
#include "worker/data/transform/element_stream.h"

namespace lockstep::worker {

// Draws each element from a buffer of the next `buffer` ones of the input, as tf.data's shuffle.
// Every iteration has another order.
class ShuffleStream final : public ElementStream {
 public:
  // buffer > 0. The memory grows to the elements that the buffer holds.
  ShuffleStream(std::unique_ptr<ElementStream> input, int64_t buffer, Philox random)
      : input_(std::move(input)), most_(buffer), random_(random) {}
  bool Next(Element* element) override;
  void Restart() override;

 private:
  void FillBuffer();

  const std::unique_ptr<ElementStream> input_;
  const int64_t most_;
  const Philox random_;
  std::vector<Element> buffer_;  // the first held_ are in use
  int64_t held_ = 0;
  bool input_ended_ = false;
  uint64_t draws_ = 0;
  uint64_t iteration_ = 0;
};

// Numbers the examples in DrawnExample::draw as they pass, on and on over all iterations.
class NumberingStream final : public ElementStream {
 public:
  explicit NumberingStream(std::unique_ptr<ElementStream> input) : input_(std::move(input)) {}
  bool Next(Element* element) override;
  void Restart() override { input_->Restart(); }

 private:
  const std::unique_ptr<ElementStream> input_;
  int64_t next_ = 0;
};

}  // namespace lockstep::worker
