#include "common/transport/grpc_shm/shared_memory_references.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/tensor/seq_lock.h"
#include "tests/unit/common/transport/grpc_shm/exchange.h"

namespace lockstep {
namespace {

using test::Attach;
using test::Identity;
using Segments = ReceivedTensors::Segments;

// A registry and a worker that has exchanged memory with it.
class Exchanged {
 public:
  Exchanged() {
    values_ = *registry_.MakeValues(256);
    memory_ = Attach(&registry_, worker());
  }
  static WorkerIdentity worker() { return Identity(0, 100); }
  std::span<std::byte> memory() { return memory_->bytes(); }
  std::span<std::byte> values() { return values_.bytes; }

  absl::StatusOr<ReceivedTensors> Resolve(PushRequest request, Segments payload = {}) {
    *request.mutable_worker() = worker();
    request.set_in_memory(true);
    return references_.Resolve(request, std::make_shared<const Segments>(std::move(payload)));
  }
  // Dense pieces at these places, of these sizes.
  absl::StatusOr<ReceivedTensors> Resolve(std::vector<std::pair<uint64_t, uint64_t>> places) {
    PushRequest request;
    for (const auto& [place, size] : places) {
      PushPiece* const piece = request.add_pieces();
      piece->set_variable(7);
      piece->set_place(place);
      piece->set_size(size);
    }
    return Resolve(request);
  }
  const SharedMemoryReferences& references() { return references_; }

 private:
  SharedMemoryRegistry registry_;
  const SharedMemoryReferences references_{&registry_};
  LentMemory values_;
  std::shared_ptr<shm::Segment> memory_;
};

TEST_CASE("A place in a worker's memory becomes the payload, and outside it nothing does") {
  Exchanged ps;
  ps.memory()[64] = std::byte{5};
  const auto tensors = ps.Resolve({{64, 8}, {4096, 0}, {0, 4096}});
  REQUIRE(tensors.ok());
  CHECK(tensors->lifetime() == ReceivedTensors::Lifetime::kBorrowed);
  REQUIRE(tensors->segments().size() == 3);
  CHECK(tensors->segments()[0][0] == std::byte{5});
  CHECK(tensors->segments()[1].empty());
  CHECK(tensors->owner() != nullptr);
  for (const auto& [place, size] : std::vector<std::pair<uint64_t, uint64_t>>{
           {4096, 1}, {4097, 0}, {1, 4096}, {64, UINT64_MAX}, {UINT64_MAX, 1}, {UINT64_MAX, 2}}) {
    const absl::Status outside = ps.Resolve({{0, 8}, {place, size}}).status();
    CHECK(absl::IsInvalidArgument(outside));
    CHECK(absl::StrContains(outside.message(), "variable 7"));
  }
}

TEST_CASE("Row indices come in the message, and the values of their slices lie in memory") {
  Exchanged ps;
  const std::vector<std::byte> indices(40);
  // A dense piece of 8 bytes, then sparse ones: 3 and 2 rows of 4 bytes.
  struct Message {
    uint64_t offset = 0;
    int64_t rows = 3;
    uint64_t index_bytes = 40;
  };
  const auto resolve = [&](const Message& message) {
    PushRequest request;
    request.add_pieces()->set_size(8);
    PushPiece* piece = request.add_pieces();
    piece->set_variable(7);
    piece->set_offset(message.offset);
    piece->set_size(36);
    piece->set_rows(message.rows);
    piece->set_place(64);
    piece = request.add_pieces();
    piece->set_variable(8);
    piece->set_size(24);
    piece->set_rows(2);
    piece->set_place(128);
    // Cut within the first piece's indices.
    return ps.Resolve(request, {std::span(indices).first(10),
                                std::span(indices).subspan(10, message.index_bytes - 10)});
  };
  const auto tensors = resolve({});
  REQUIRE(tensors.ok());
  std::vector<size_t> sizes;
  for (const auto& span : tensors->segments()) sizes.push_back(span.size());
  CHECK(sizes == std::vector<size_t>{8, 10, 14, 12, 16, 8});
  REQUIRE(tensors->references().size() == 3);
  CHECK(tensors->references()[1].values.data() == tensors->segments()[3].data());
  CHECK(tensors->references()[2].values.size() == 8);
  for (const auto& [message, error] : std::vector<std::pair<Message, std::string>>{
           {{.offset = 8},
            "expected a whole sparse gradient in memory, got 36 bytes from offset 8"},
           {{.rows = 5}, "of one of 5 rows"},
           {{.rows = -1}, "of one of -1 rows"},
           {{.rows = INT64_MAX}, "rows"},
           {{.index_bytes = 39}, "variable 8: expected a payload with the indices of its 2 rows"},
           {{.rows = 2}, "beyond its row indices"}}) {
    CAPTURE(error);
    const absl::Status refused = resolve(message).status();
    CHECK(absl::IsInvalidArgument(refused));
    CHECK(absl::StrContains(refused.message(), error));
  }
}

TEST_CASE("Without exchanged memory a push by reference is NOT_FOUND, and values go as bytes") {
  const SharedMemoryRegistry registry;
  PullRequest pull;
  pull.set_in_memory(true);
  PushRequest push;
  push.set_in_memory(true);
  push.mutable_next()->mutable_pull()->set_in_memory(true);
  for (const SharedMemoryRegistry* const any : {&registry, (const SharedMemoryRegistry*)nullptr}) {
    const SharedMemoryReferences references(any);
    const auto payload = std::make_shared<const Segments>();
    CHECK(absl::IsNotFound(references.Resolve(push, payload).status()));
    CHECK(references.LentTo(pull) == nullptr);
    CHECK(references.LentTo(push) == nullptr);
  }
}

TEST_CASE("Values in the lent memory are named by their place and that of their sequence lock") {
  Exchanged ps;
  PullRequest pull;
  *pull.mutable_worker() = Exchanged::worker();
  CHECK(ps.references().LentTo(pull) == nullptr);  // not asked for
  pull.set_in_memory(true);
  const auto lent = ps.references().LentTo(pull);
  REQUIRE(lent != nullptr);
  const auto* const seq_lock = reinterpret_cast<const SeqLock*>(ps.values().data() + 64);
  const OutgoingTensor tensor{
      .values = ps.values().subspan(136, 8), .by_reference = true, .seq_lock = seq_lock};
  PushReply pushed;
  PullReply pulled;
  pulled.add_pieces();
  pushed.mutable_next()->mutable_values()->add_pieces();
  REQUIRE(ps.references().Refer({tensor}, lent, &pulled).ok());
  REQUIRE(ps.references().Refer({tensor}, lent, &pushed).ok());
  for (const PullReply& reply : {pulled, pushed.next().values()}) {
    CHECK(reply.in_memory());
    CHECK(reply.pieces(0).place() == 136);
    CHECK(reply.pieces(0).stamp() == 64);
  }
  const std::vector<std::byte> elsewhere(8);
  CHECK(absl::IsUnavailable(
      ps.references().Refer({{.values = elsewhere, .seq_lock = seq_lock}}, lent, &pulled)));
}

}  // namespace
}  // namespace lockstep
