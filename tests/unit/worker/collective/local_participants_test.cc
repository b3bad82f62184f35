// Elements that come from other processes in pieces, cut anywhere.
#include "worker/collective/local_participants.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/conformance/collective_cases.h"
#include "worker/collective/make_schedule.h"
#include "worker/collective/run_in_memory.h"

namespace lockstep::worker {
namespace {

using conformance::DrawVectors;

// Copies of a message's bytes, in pieces of random sizes at random addresses.
class PiecesOf {
 public:
  PiecesOf(std::span<const std::byte> bytes, size_t most, std::mt19937_64* random) {
    while (!bytes.empty()) {
      const size_t size = 1 + (*random)() % std::min(most, bytes.size());
      const size_t shift = (*random)() % 8;
      std::vector<std::byte>& piece = memory_.emplace_back(shift + size);
      std::ranges::copy(bytes.first(size), piece.begin() + shift);
      spans_.push_back(std::span<const std::byte>(piece).subspan(shift));
      bytes = bytes.subspan(size);
    }
  }
  LocalParticipants::Pieces spans() const { return spans_; }

 private:
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::span<const std::byte>> spans_;
};

// Two processes, the participants halved between them, until both are done.
void RunInTwoProcesses(const Schedule& schedule, const std::vector<MutableTensorView>& vectors,
                       size_t most, uint64_t seed) {
  std::mt19937_64 random(seed);
  const int half = schedule.num_participants() / 2;
  const auto all = absl::MakeConstSpan(vectors);
  LocalParticipants first(&schedule, 0, all.first(half), 1);
  LocalParticipants second(&schedule, half, all.subspan(half), 1);
  std::vector<std::unique_ptr<PiecesOf>> held;
  for (int i = 0; !first.is_done() || !second.is_done(); ++i) {
    REQUIRE(i < 1000);
    for (LocalParticipants* const sender : {&first, &second}) {
      LocalParticipants* const receiver = sender == &first ? &second : &first;
      std::vector<LocalParticipants::Send> sends;
      std::vector<MessageId> consumed;
      sender->Advance(&sends, &consumed);
      for (const MessageId& message : consumed) receiver->OnSent(message);
      for (const LocalParticipants::Send& send : sends) {
        const auto bytes = send.elements.bytes();
        REQUIRE(receiver->Check(send.message, bytes.size()).ok());
        REQUIRE(!receiver->HasReceived(send.message));
        held.push_back(std::make_unique<PiecesOf>(bytes, most, &random));
        receiver->Receive(send.message, held.back()->spans());
        REQUIRE(receiver->HasReceived(send.message));
      }
    }
  }
}

TEST_CASE("pieces cut through elements, at any address, give the bits of one process") {
  uint64_t seed = 0;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    for (const ReductionAlgorithm algorithm :
         {ReductionAlgorithm::kXring, ReductionAlgorithm::kRechd, ReductionAlgorithm::kPscpu}) {
      for (const size_t most : {size_t{3}, size_t{1000}, size_t{100'000}}) {
        ScheduleSpec spec{algorithm, {2, 2}};
        spec.length = 20'011;
        const Schedule schedule = MakeSchedule(spec).value();
        std::vector<Tensor> vectors = DrawVectors(dtype, 4, spec.length, ++seed);
        std::vector<Tensor> expected;
        std::vector<MutableTensorView> views;
        std::vector<MutableTensorView> expected_views;
        for (Tensor& vector : vectors) expected.push_back(vector.Clone());
        for (Tensor& vector : vectors) views.push_back(vector.view());
        for (Tensor& vector : expected) expected_views.push_back(vector.view());
        RunInMemory(schedule, expected_views, 1);
        RunInTwoProcesses(schedule, views, most, seed);
        INFO(Name(algorithm) << ", " << Name(dtype) << ", pieces of at most " << most);
        for (int rank = 0; rank < 4; ++rank) {
          if (!std::ranges::equal(views[rank].bytes(), expected_views[rank].bytes())) {
            FAIL("other bits at " << rank);
          }
        }
      }
    }
  }
  CHECK(seed == 27);
}

TEST_CASE("a message that the schedule does not have is refused") {
  ScheduleSpec spec{ReductionAlgorithm::kXring, {2, 1}};
  spec.length = 10;
  const Schedule schedule = MakeSchedule(spec).value();
  Tensor vector = Tensor::Zeros(DType::kFloat32, Shape({10}));
  const LocalParticipants participants(&schedule, 1, {{vector.view()}}, 1);
  CHECK(participants.Check({0, 1, 0}, 20).ok());
  for (const MessageId& message : std::vector<MessageId>{
           {0, 0, 0}, {1, 1, 0}, {2, 1, 0}, {-1, 1, 0}, {0, 1, 2}, {0, 1, -1}, {0, 2, 0}}) {
    CHECK(absl::IsInvalidArgument(participants.Check(message, 20)));
  }
  CHECK(participants.Check({0, 1, 0}, 19).message() ==
        "message 0 from participant 0 to 1: expected 20 bytes, got 19");
}

}  // namespace
}  // namespace lockstep::worker
