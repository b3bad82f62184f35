#include "common/transport/grpc_shm/mapped_values.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {
namespace {

// A ps's memory of so many bytes, as a worker sees it.
class Memory {
 public:
  explicit Memory(uint64_t bytes) {
    auto made = shm::Segment::Create("test", bytes);
    REQUIRE(made.ok());
    auto mapped = shm::Segment::Map((*made)->descriptor());
    REQUIRE(mapped.ok());
    segment_ = *std::move(mapped);
  }

  // What comes of pulling `rows`, or all, of variable 3, answered with a piece at these places.
  absl::Status Pull(uint64_t place, uint64_t size, uint64_t stamp,
                    const std::vector<int64_t>& rows = {}) const {
    PullRequest request;
    PullPiece* const asked = request.add_pieces();
    asked->set_variable(3);
    for (const int64_t row : rows) asked->add_rows(row);
    PullReply reply;
    PullPiece* const piece = reply.add_pieces();
    piece->set_variable(3);
    piece->set_place(place);
    piece->set_size(size);
    piece->set_stamp(stamp);
    const auto values = MappedValues(request, reply, segment_);
    if (!values.ok()) return values.status();
    std::vector<std::byte> bytes(size);
    const std::span<std::byte> target(bytes);
    return values->CopyTo(std::span(&target, 1));
  }

 private:
  std::shared_ptr<const shm::Segment> segment_;
};

TEST_CASE("Values at places inside the ps's memory are read") {
  const Memory memory(256);
  CHECK(memory.Pull(64, 192, 0).ok());
  CHECK(memory.Pull(0, 192, 192).ok());
  CHECK(memory.Pull(256, 0, 192).ok());
  CHECK(memory.Pull(64, 8, 0, {0, 47}).ok());  // rows of 4 bytes: the last ends at byte 256
}

TEST_CASE("A place outside the ps's memory is refused, naming the variable") {
  const Memory memory(256);
  struct Case {
    const char* name;
    uint64_t place, size, stamp;
    std::vector<int64_t> rows;
  };
  const Case cases[] = {
      {"a value behind the end", 257, 0, 0, {}},
      {"a value over the end", 64, 193, 0, {}},
      {"a value whose end wraps", UINT64_MAX, 2, 0, {}},
      {"a size that wraps", 64, UINT64_MAX, 0, {}},
      {"a stamp over the end", 64, 8, 200, {}},
      {"a stamp behind the end", 64, 8, 256, {}},
      {"a stamp that wraps", 64, 8, UINT64_MAX - 7, {}},
      {"a stamp between its places", 64, 8, 4, {}},
      {"a row over the end", 64, 4, 0, {48}},
      {"a negative row", 64, 4, 0, {-1}},
      {"a row whose place wraps", 64, 8, 0, {INT64_MAX}},
      {"a row whose end wraps", 64, 8, 0, {INT64_MAX / 8 + 1}},
      {"rows that do not divide the size", 64, 9, 0, {0, 1}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const absl::Status status = memory.Pull(c.place, c.size, c.stamp, c.rows);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()),
               Catch::Contains("variable 3") && Catch::Contains("memory of 256"));
  }
}

TEST_CASE("A memory that has no room for a stamp holds no values") {
  for (const uint64_t bytes : {1, 8, 32, 63}) {
    CAPTURE(bytes);
    const Memory memory(bytes);
    for (const uint64_t stamp : {uint64_t{0}, uint64_t{8}, uint64_t{1} << 40, UINT64_MAX - 63}) {
      CHECK(absl::IsInvalidArgument(memory.Pull(0, 1, stamp)));
    }
  }
  CHECK(Memory(64).Pull(64, 0, 0).ok());
}

}  // namespace
}  // namespace lockstep
