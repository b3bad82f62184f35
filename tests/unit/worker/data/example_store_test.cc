#include "worker/data/example_store.h"

#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/worker/data/data_files.h"

namespace lockstep::worker {
namespace {

using lockstep::test::CountingIdx;
using lockstep::test::Idx;
using lockstep::test::TemporaryFolder;

std::vector<float> Floats(const Tensor& tensor) {
  const auto all = tensor.as<float>();
  return {all.begin(), all.end()};
}

// One 3x4 image of two channels: element (y, x, c) is 100 y + 10 x + c + 1.
ExampleStore OneImage(const TemporaryFolder& folder, float offset, float scale) {
  std::string elements;
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 4; ++x) {
      for (int c = 0; c < 2; ++c) {
        elements += '\0';
        elements += static_cast<char>(100 * y + 10 * x + c + 1);
      }
    }
  }
  DataDef data;
  data.mutable_idx()->add_train_images(folder.Write("x", Idx(0x0b, {1, 3, 4, 2}, elements)));
  data.mutable_idx()->add_train_labels(folder.Write("y", CountingIdx({1})));
  data.set_offset(offset);
  data.set_scale(scale);
  auto store = ExampleStore::Open(data, Split::kTrain, {Shape({3, 4, 2}), true, 2});
  REQUIRE(store.ok());
  return *std::move(store);
}

TEST_CASE("A shift moves every pixel and lets zeros in, after offset and scale") {
  TemporaryFolder folder;
  const ExampleStore store = OneImage(folder, 5, 0.5f);
  for (int64_t dy = -4; dy <= 4; ++dy) {
    for (int64_t dx = -5; dx <= 5; ++dx) {
      Batch batch = store.MakeBatch(2);
      batch.features.FillZero();
      store.CopyShiftedTo(0, {dy, dx}, 1, &batch);
      const auto out = Floats(batch.features);
      for (int64_t y = 0; y < 3; ++y) {
        for (int64_t x = 0; x < 4; ++x) {
          for (int64_t c = 0; c < 2; ++c) {
            const int64_t from_y = y - dy;
            const int64_t from_x = x - dx;
            const bool inside = from_y >= 0 && from_y < 3 && from_x >= 0 && from_x < 4;
            const float pixel = 100.0f * from_y + 10.0f * from_x + c + 1;
            CAPTURE(dy, dx, y, x, c);
            CHECK(out[24 + (y * 4 + x) * 2 + c] == (inside ? (pixel - 5) * 0.5f : 0.0f));
            CHECK(out[(y * 4 + x) * 2 + c] == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("No shift and a shift of nothing give the same") {
  TemporaryFolder folder;
  const ExampleStore store = OneImage(folder, 0, 0);
  Batch plain = store.MakeBatch(1);
  Batch shifted = store.MakeBatch(1);
  store.CopyTo(0, 0, &plain);
  store.CopyShiftedTo(0, {0, 0}, 0, &shifted);
  CHECK(Floats(plain.features) == Floats(shifted.features));
  CHECK(Floats(plain.features)[23] == 232);
}

TEST_CASE("Every element type is converted as float") {
  struct Case {
    int code;
    std::string data;
    std::vector<float> expected;
  };
  const Case cases[] = {
      {0x08, std::string("\x00\xff", 2), {-1, 509}},
      {0x09, std::string("\x7f\x80", 2), {253, -257}},
      {0x0b, std::string("\x01\x02\xff\xfe", 4), {515, -5}},
      {0x0c, std::string("\x00\x01\0\0\xff\xff\xff\xff", 8), {131071, -3}},
      {0x0d, std::string("\x3f\x80\0\0\xc0\x20\0\0", 8), {1, -6}},
      {0x0e, std::string("\x3f\xf8\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16), {2, -1}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.code);
    TemporaryFolder folder;
    DataDef data;
    data.mutable_idx()->add_train_images(folder.Write("x", Idx(c.code, {1, 2}, c.data)));
    data.mutable_idx()->add_train_labels(folder.Write("y", CountingIdx({1})));
    data.set_offset(0.5f);
    data.set_scale(2);
    const auto store = ExampleStore::Open(data, Split::kTrain, {Shape({2}), true, 2});
    REQUIRE(store.ok());
    Batch batch = store->MakeBatch(1);
    store->CopyTo(0, 0, &batch);
    CHECK(Floats(batch.features) == c.expected);
  }
}

TEST_CASE("Bytes of every value and every length are scaled alike") {
  TemporaryFolder folder;
  DataDef data;
  data.mutable_idx()->add_train_images(folder.Write("x", CountingIdx({3, 257})));
  data.mutable_idx()->add_train_labels(folder.Write("y", CountingIdx({3})));
  data.set_offset(127.5f);
  data.set_scale(1 / 255.0f);
  const auto store = ExampleStore::Open(data, Split::kTrain, {Shape({257, 1}), true, 3});
  REQUIRE(store.ok());
  Batch batch = store->MakeBatch(1);
  for (int64_t example = 0; example < 3; ++example) {
    store->CopyTo(example, 0, &batch);
    const auto out = Floats(batch.features);
    for (int i = 0; i < 257; ++i) {
      const float byte = (example * 257 + i) % 256;
      CHECK(out[i] == (byte - 127.5f) * (1 / 255.0f));
    }
    CHECK(batch.labels.as<int32_t>()[0] == example);
  }
}

TEST_CASE("Shifts stay within their bound, reach it, and follow seed and position alone") {
  const ShiftSource source(11, 2);
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int64_t position = 0; position < 2000; ++position) {
    const Shift shift = source.At(position);
    CHECK(std::abs(shift.dy) <= 2);
    CHECK(std::abs(shift.dx) <= 2);
    seen.insert({shift.dy, shift.dx});
    const Shift again = ShiftSource(11, 2).At(position);
    CHECK((again.dy == shift.dy && again.dx == shift.dx));
  }
  CHECK(seen.size() == 25);
  int equal = 0;
  const ShiftSource other(12, 2);
  for (int64_t position = 0; position < 1000; ++position) {
    const Shift a = source.At(position);
    const Shift b = other.At(position);
    equal += a.dy == b.dy && a.dx == b.dx;
  }
  CHECK(equal < 100);
}

}  // namespace
}  // namespace lockstep::worker
