#include "common/tensor/segmented_reader.h"

#include <catch2/catch.hpp>
#include <vector>

namespace lockstep {
namespace {

// Bytes that count up from 0, in pieces of these sizes.
class Pieces {
 public:
  explicit Pieces(const std::vector<size_t>& sizes) {
    uint8_t next = 0;
    for (const size_t size : sizes) {
      bytes_.emplace_back();
      for (size_t i = 0; i < size; ++i) bytes_.back().push_back(std::byte{next++});
    }
    spans_.assign(bytes_.begin(), bytes_.end());
  }

  const std::vector<std::span<const std::byte>>& spans() const { return spans_; }

 private:
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<std::span<const std::byte>> spans_;
};

TEST_CASE("a cursor copies across cuts, forward, with gaps") {
  const Pieces pieces({3, 0, 1, 5, 2});
  SegmentedReader cursor(pieces.spans());
  std::vector<std::byte> out(11);
  const auto copy = [&](size_t from, size_t size) {
    return cursor.CopyFrom(from, std::span(out).subspan(from, size));
  };
  CHECK(copy(0, 1));
  CHECK(copy(2, 3));
  CHECK(copy(5, 0));
  CHECK(copy(8, 3));
  for (const size_t at : {0, 2, 3, 4, 8, 9, 10}) CHECK(out[at] == std::byte(at));
  for (const size_t at : {1, 5, 6, 7}) CHECK(out[at] == std::byte{0});
}

TEST_CASE("a cursor that is asked for what is past, or beyond the end, moves nothing") {
  const Pieces pieces({4, 4});
  SegmentedReader cursor(pieces.spans());
  std::vector<std::byte> out(8);
  CHECK(cursor.CopyFrom(3, std::span(out).first(2)));
  CHECK_FALSE(cursor.CopyFrom(4, std::span(out).first(1)));
  CHECK_FALSE(cursor.CopyFrom(6, std::span(out).first(3)));
  CHECK_FALSE(cursor.CopyFrom(9, std::span(out).first(0)));
  CHECK(cursor.position() == 5);
  CHECK(cursor.CopyFrom(8, std::span(out).first(0)));
}

}  // namespace
}  // namespace lockstep
