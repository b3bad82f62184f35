// Streams that choose which elements come, without a random choice.
#pragma once

#include <cstdint>
#include <memory>

#include "worker/data/transform/element_stream.h"

namespace lockstep::worker {

// The examples 0 .. num_examples - 1, one in each element.
class RangeStream final : public ElementStream {
 public:
  explicit RangeStream(int64_t num_examples) : num_examples_(num_examples) {}
  bool Next(Element* element) override;
  void Restart() override { next_ = 0; }

 private:
  const int64_t num_examples_;
  int64_t next_ = 0;
};

// Of each iteration over the input, the elements index, index + shards, ...; 0 <= index < shards.
class ShardStream final : public ElementStream {
 public:
  ShardStream(std::unique_ptr<ElementStream> input, int64_t shards, int64_t index)
      : input_(std::move(input)), shards_(shards), index_(index) {}
  bool Next(Element* element) override;
  void Restart() override;

 private:
  const std::unique_ptr<ElementStream> input_;
  const int64_t shards_;
  const int64_t index_;
  int64_t place_ = 0;  // of the input's next element, modulo shards_
};

// `count` iterations over the input as one; 0: without an end, unless the input is empty.
class RepeatStream final : public ElementStream {
 public:
  RepeatStream(std::unique_ptr<ElementStream> input, int64_t count)
      : input_(std::move(input)), count_(count) {}
  bool Next(Element* element) override;
  void Restart() override;

 private:
  const std::unique_ptr<ElementStream> input_;
  const int64_t count_;
  int64_t finished_ = 0;      // iterations
  bool has_element_ = false;  // the current iteration
};

// Batches of `size` examples, size > 0. Without drop_remainder the last one may have fewer.
class BatchStream final : public ElementStream {
 public:
  BatchStream(std::unique_ptr<ElementStream> input, int64_t size, bool drop_remainder)
      : input_(std::move(input)), size_(size), drop_remainder_(drop_remainder) {}
  bool Next(Element* element) override;
  void Restart() override { input_->Restart(); }

 private:
  const std::unique_ptr<ElementStream> input_;
  const int64_t size_;
  const bool drop_remainder_;
  Element one_;
};

}  // namespace lockstep::worker
