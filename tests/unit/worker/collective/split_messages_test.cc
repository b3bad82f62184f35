#include "worker/collective/split_messages.h"

#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/conformance/collective_cases.h"
#include "tests/support/collective_runs.h"
#include "worker/collective/make_schedule.h"
#include "worker/collective/run_in_memory.h"

namespace lockstep::worker {
namespace {

using conformance::CollectiveCases;
using conformance::Describe;
using conformance::DrawVectors;
using conformance::ExpectedSum;

std::vector<MutableTensorView> ViewsOf(std::vector<Tensor>* vectors) {
  std::vector<MutableTensorView> views;
  for (Tensor& vector : *vectors) views.push_back(vector.view());
  return views;
}

TEST_CASE("cut messages change no bit, in any order of arrival") {
  uint64_t seed = 0;
  for (ScheduleSpec spec : CollectiveCases()) {
    spec.length = 97;
    for (const size_t max_elements : {size_t{1}, size_t{5}}) {
      ++seed;
      INFO(Describe(spec) << ", messages of " << max_elements);
      const Schedule schedule = SplitMessages(MakeSchedule(spec).value(), max_elements);
      std::vector<Tensor> vectors =
          DrawVectors(DType::kFloat32, spec.topology.num_participants(), spec.length, seed);
      const std::vector<float> expected = ExpectedSum(spec, vectors);
      const auto run = test::RunInSeededOrder(schedule, ViewsOf(&vectors), 1, seed, seed % 4 < 2);
      REQUIRE(run.has_ended);
      for (const Tensor& vector : vectors) {
        if (!std::ranges::equal(vector.as<float>(), expected)) FAIL("other bits");
      }
    }
  }
}

// Whether all operations end where a participant has at most `window` unanswered messages to
// another one, in the order of its sends, and a message is answered when it is used.
bool EndsInWindow(const Schedule& schedule, int window) {
  struct Stream {
    std::deque<int> queued;
    std::set<int> sent;
    int unanswered = 0;
  };
  std::map<std::pair<int, int>, Stream> streams;  // from, to
  std::vector<size_t> next(schedule.num_participants());
  const auto run_next = [&](int rank) {
    if (next[rank] == schedule.operations(rank).size()) return false;
    const Operation& operation = schedule.operations(rank)[next[rank]];
    const auto terms = schedule.terms(rank, operation);
    if (operation.kind == Operation::Kind::kSend) {
      streams[{rank, terms[0].rank}].queued.push_back(terms[0].message);
    } else {
      for (const Term& term : terms) {
        const bool is_there = streams[{term.rank, rank}].sent.contains(term.message);
        if (term.message >= 0 && !is_there) return false;
      }
      for (const Term& term : terms) {
        if (term.message >= 0) --streams[{term.rank, rank}].unanswered;
      }
    }
    ++next[rank];
    return true;
  };
  for (bool has_moved = true; std::exchange(has_moved, false);) {
    for (int rank = 0; rank < schedule.num_participants(); ++rank) {
      while (run_next(rank)) has_moved = true;
    }
    for (auto& [key, stream] : streams) {
      for (; !stream.queued.empty() && stream.unanswered < window; ++stream.unanswered) {
        stream.sent.insert(stream.queued.front());
        stream.queued.pop_front();
        has_moved = true;
      }
    }
  }
  for (int rank = 0; rank < schedule.num_participants(); ++rank) {
    if (next[rank] != schedule.operations(rank).size()) return false;
  }
  return true;
}

TEST_CASE("no participant waits for a message behind others that it cannot use yet") {
  for (ScheduleSpec spec : CollectiveCases()) {
    spec.length = 97;
    INFO(Describe(spec));
    const Schedule whole = MakeSchedule(spec).value();
    for (const size_t max_elements : {1, 2, 5}) {
      for (const int window : {1, 4}) {
        CAPTURE(window, max_elements);
        CHECK(EndsInWindow(SplitMessages(whole, max_elements), window));
      }
    }
  }
}

TEST_CASE("no message is longer than it may be, and the elements stay as many") {
  for (ScheduleSpec spec : CollectiveCases()) {
    spec.length = 97;
    const Schedule whole = MakeSchedule(spec).value();
    const Schedule schedule = SplitMessages(whole, 4);
    CHECK(schedule.Total().elements == whole.Total().elements);
    for (int rank = 0; rank < schedule.num_participants(); ++rank) {
      for (const Operation& operation : schedule.operations(rank)) {
        if (operation.range.count > 4) FAIL(Describe(spec));
      }
    }
  }
}

TEST_CASE(
    "a participant of a ring passes on the first piece of a sum before it receives the second") {
  ScheduleSpec spec{ReductionAlgorithm::kXring, {3, 1}};
  spec.length = 30;
  const Schedule schedule = SplitMessages(MakeSchedule(spec).value(), 5);
  using Kind = Operation::Kind;
  std::vector<Kind> kinds;
  for (const Operation& operation : schedule.operations(0)) kinds.push_back(operation.kind);
  const std::vector<Kind> expected = {
      Kind::kSend,    Kind::kSend,                                 // of its own elements
      Kind::kSum,     Kind::kSend,   Kind::kSum,     Kind::kSend,  // passed on
      Kind::kSum,     Kind::kSend,   Kind::kSum,     Kind::kSend,  // its total
      Kind::kReceive, Kind::kSend,   Kind::kReceive, Kind::kSend,  // a copy, passed on
      Kind::kReceive, Kind::kReceive};
  CHECK(kinds == expected);
}

}  // namespace
}  // namespace lockstep::worker
