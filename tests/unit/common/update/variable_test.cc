#include "common/update/variable.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

Tensor Of(float value) {
  Tensor tensor(DType::kFloat32, Shape({4}));
  std::ranges::fill(tensor.as<float>(), value);
  return tensor;
}

float First(const std::shared_ptr<const Tensor>& value) { return value->as<float>()[0]; }

// Publishes the next version as a step does, and returns the memory it is in.
const void* PublishNext(Variable* variable, float value) {
  variable->DropPrevious().reset();
  std::shared_ptr<ValueBuffer> next = variable->TakeBuffer();
  std::ranges::fill(next->tensor.as<float>(), value);
  const void* memory = next->tensor.data();
  variable->Publish(variable->Finish(std::move(next), nullptr));
  return memory;
}

TEST_CASE("the newest version and the one before it are readable") {
  Variable variable("v", true, Of(0), GlobalStep(5), {});
  CHECK(First(variable.At(GlobalStep(5))) == 0);
  CHECK(variable.At(GlobalStep(4)) == nullptr);
  CHECK(variable.At(GlobalStep(6)) == nullptr);
  PublishNext(&variable, 6);
  CHECK(First(variable.At(GlobalStep(5))) == 0);
  CHECK(First(variable.At(GlobalStep(6))) == 6);
  CHECK(First(variable.newest()) == 6);
  PublishNext(&variable, 7);
  CHECK(variable.At(GlobalStep(5)) == nullptr);
  CHECK(First(variable.At(GlobalStep(6))) == 6);
  CHECK(variable.newest_version() == GlobalStep(7));
  CHECK(First(variable.DropPrevious()) == 6);
  CHECK(variable.At(GlobalStep(6)) == nullptr);
}

TEST_CASE("without readers two buffers take turns") {
  Variable variable("v", true, Of(0), GlobalStep(0), {});
  const void* first = variable.newest()->data();
  const void* second = PublishNext(&variable, 1);
  CHECK(second != first);
  for (int step = 2; step < 10; step += 2) {
    CHECK(PublishNext(&variable, static_cast<float>(step)) == first);
    CHECK(PublishNext(&variable, static_cast<float>(step + 1)) == second);
  }
}

// A variable in three places, and what a reader of the memory sees there.
class Placed {
 public:
  Placed()
      : memory_(std::make_shared<Tensor>(Tensor::Zeros(DType::kUInt8, Shape({3 * kPlaceBytes})))) {}
  Variable MakeVariable(int64_t version) {
    std::vector<SharedBuffer> places;
    for (int i = 0; i < 3; ++i) places.push_back({PlaceAt(i), memory_});
    return Variable("v", true, Of(static_cast<float>(version)), GlobalStep(version), {}, places);
  }
  const SeqLock& StampOf(const void* value) const {
    return *reinterpret_cast<const SeqLock*>(static_cast<const std::byte*>(value) - SeqLock::kRoom);
  }
  bool Has(const void* value) const {
    const auto* const byte = static_cast<const std::byte*>(value);
    return !std::less<>()(byte, PlaceAt(0)) && std::less<>()(byte, PlaceAt(3));
  }

 private:
  static constexpr int64_t kPlaceBytes = 64 + 64;
  std::byte* PlaceAt(int i) const {
    return static_cast<std::byte*>(memory_->data()) + i * kPlaceBytes;
  }
  std::shared_ptr<Tensor> memory_;
};

TEST_CASE("values take turns in the places that others see, and the sequence locks tell them") {
  REQUIRE(SharedBufferBytes(4 * sizeof(float)) == 128);
  Placed placed;
  Variable variable = placed.MakeVariable(7);
  const void* const first = variable.newest()->data();
  REQUIRE(placed.Has(first));
  CHECK(First(variable.newest()) == 7);
  CHECK(placed.StampOf(first).StillHolds(7));
  CHECK_FALSE(placed.StampOf(first).StillHolds(6));
  const void* const second = PublishNext(&variable, 8);
  CHECK(second != first);
  CHECK(placed.StampOf(first).StillHolds(7));  // one behind
  CHECK(placed.StampOf(second).StillHolds(8));
  variable.DropPrevious().reset();
  const auto being_written = variable.TakeBuffer();
  CHECK(being_written->tensor.data() == first);
  CHECK_FALSE(placed.StampOf(first).StillHolds(7));
  CHECK_FALSE(placed.StampOf(first).StillHolds(9));
}

TEST_CASE("with all places kept by readers values go to the heap, and come back") {
  Placed placed;
  Variable variable = placed.MakeVariable(0);
  std::vector<std::shared_ptr<const Tensor>> readers = {variable.newest()};
  for (const float value : {1, 2}) {
    CHECK(placed.Has(PublishNext(&variable, value)));
    readers.push_back(variable.newest());
  }
  CHECK_FALSE(placed.Has(PublishNext(&variable, 3)));
  CHECK_FALSE(placed.Has(PublishNext(&variable, 4)));
  readers.clear();
  for (const float value : {5, 6, 7}) CHECK(placed.Has(PublishNext(&variable, value)));
  CHECK(First(variable.newest()) == 7);
}

TEST_CASE("of a version in the making what was shown can be read, and nothing else") {
  Variable variable("v", true, Of(0), GlobalStep(3), {});
  const std::shared_ptr<ValueBuffer> buffer = variable.TakeBuffer();
  const NextValue next{{buffer, &buffer->tensor}, nullptr};
  const auto shown = [&](int64_t version, uint64_t begin, uint64_t end) {
    return variable.Shown(GlobalStep(version), {begin, end}).value;
  };
  CHECK(shown(4, 0, 4) == nullptr);
  variable.ShowPart(next, {8, 16});
  CHECK(shown(4, 8, 16) == next.value);
  CHECK(shown(4, 12, 16) == next.value);
  CHECK(shown(4, 4, 12) == nullptr);
  CHECK(shown(5, 8, 16) == nullptr);
  CHECK(shown(3, 8, 16) == nullptr);
  variable.ShowPart(next, {0, 8});
  CHECK(shown(4, 4, 12) == next.value);
  CHECK(variable.At(GlobalStep(4)) == nullptr);
  PublishNext(&variable, 1);
  CHECK(shown(4, 4, 12) == nullptr);
  CHECK(shown(5, 4, 12) == nullptr);
}

TEST_CASE("a reader keeps its version unchanged, and the next step does not wait for it") {
  Variable variable("v", true, Of(0), GlobalStep(0), {});
  const std::shared_ptr<const Tensor> read = variable.newest();
  for (int step = 1; step < 6; ++step) {
    CHECK(PublishNext(&variable, static_cast<float>(step)) != read->data());
  }
  CHECK(First(read) == 0);
}

TEST_CASE("what slow readers held beyond three buffers is let go when they have read") {
  const auto pool = BufferPool::Create(DType::kFloat32, Shape({4}));
  std::vector<std::shared_ptr<const Tensor>> readers;
  const auto read_one_more = [&](std::shared_ptr<ValueBuffer> buffer) {
    buffer->version = GlobalStep(0);
    readers.push_back(BufferPool::Share(std::move(buffer)));
  };
  read_one_more(pool->Adopt(Of(1), GlobalStep(0)));
  for (int i = 0; i < 4; ++i) read_one_more(pool->Take());
  CHECK(pool->num_buffers() == 5);
  readers.clear();
  CHECK(pool->num_buffers() == 3);
  for (int i = 0; i < 3; ++i) read_one_more(pool->Take());
  CHECK(pool->num_buffers() == 3);
}

TEST_CASE("with places nothing stays on the heap") {
  const auto memory = std::make_shared<Tensor>(Tensor::Zeros(DType::kUInt8, Shape({3 * 128})));
  std::vector<SharedBuffer> places;
  for (int i = 0; i < 3; ++i) {
    places.push_back({static_cast<std::byte*>(memory->data()) + i * 128, memory});
  }
  const auto pool = BufferPool::Create(DType::kFloat32, Shape({4}), std::move(places));
  std::vector<std::shared_ptr<const Tensor>> readers;
  for (int i = 0; i < 5; ++i) {
    std::shared_ptr<ValueBuffer> buffer = pool->Take();
    buffer->version = GlobalStep(i);
    readers.push_back(BufferPool::Share(std::move(buffer)));
  }
  CHECK(pool->num_buffers() == 5);
  readers.clear();
  CHECK(pool->num_buffers() == 3);
  for (int i = 0; i < 3; ++i) CHECK(pool->Take()->seq_lock != nullptr);
}

TEST_CASE("a copy has the newest value and leaves it alone") {
  Variable variable("v", true, Of(3), GlobalStep(0), {});
  const std::shared_ptr<ValueBuffer> copy = variable.TakeCopy();
  CHECK(copy->tensor.as<float>()[3] == 3);
  copy->tensor.as<float>()[0] = 4;
  CHECK(First(variable.newest()) == 3);
}

TEST_CASE("of a table two versions can be read, and both are in one place") {
  const auto table = std::make_shared<Table>(Of(1), GlobalStep(5), Table::kPrevious, nullptr);
  Variable variable("v", table, GlobalStep(5), {});
  CHECK(variable.num_bytes() == 16);
  table->MakeNext(GlobalStep(6), {}, [](const Table::Change&) {});
  variable.Publish({table->value(), nullptr});
  CHECK(variable.At(GlobalStep(5)) == table->value());
  CHECK(variable.At(GlobalStep(6)) == table->value());
  CHECK(variable.DropPrevious() == table->value());
  CHECK(variable.At(GlobalStep(5)) == nullptr);
}

TEST_CASE("a value outlives its variable") {
  std::shared_ptr<const Tensor> read;
  {
    Variable variable("v", true, Of(3), GlobalStep(0), {});
    read = variable.newest();
  }
  CHECK(First(read) == 3);
}

TEST_CASE("readers on other threads hand buffers back while steps go on") {
  Variable variable("v", true, Of(0), GlobalStep(0), {});
  bool all_whole = true;
  for (int step = 1; step < 200; ++step) {
    std::shared_ptr<const Tensor> newest = variable.newest();
    bool is_whole = true;
    std::thread reader([value = std::move(newest), step, &is_whole]() mutable {
      for (const float element : value->as<float>()) is_whole &= element == step - 1;
      value.reset();
    });
    PublishNext(&variable, static_cast<float>(step));
    reader.join();
    all_whole &= is_whole;
  }
  CHECK(all_whole);
}

TEST_CASE("slots are the variable's own and change in place") {
  std::vector<Tensor> slots;
  slots.push_back(Of(1));
  slots.push_back(Of(2));
  Variable variable("v", true, Of(0), GlobalStep(0), std::move(slots));
  REQUIRE(variable.slots().size() == 2);
  variable.slots()[1].as<float>()[3] = 9;
  CHECK(variable.slots()[0].as<float>()[3] == 1);
  CHECK(variable.slots()[1].as<float>()[3] == 9);
}

TEST_CASE("a variable that begins at another step has that version alone") {
  Variable variable("v", true, Of(3), GlobalStep(5), {});
  PublishNext(&variable, 6);
  variable.RestartAt(GlobalStep(20));
  CHECK(First(variable.At(GlobalStep(20))) == 6);
  CHECK(variable.At(GlobalStep(19)) == nullptr);
  CHECK(variable.At(GlobalStep(6)) == nullptr);
  variable.OverwriteNewest().as<float>()[0] = 8;
  CHECK(First(variable.newest()) == 8);
  PublishNext(&variable, 9);
  CHECK(First(variable.At(GlobalStep(20))) == 8);
  CHECK(First(variable.At(GlobalStep(21))) == 9);
}

}  // namespace
}  // namespace lockstep
