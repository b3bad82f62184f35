#include "worker/collective/first_reads.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/conformance/collective_cases.h"
#include "worker/collective/make_schedule.h"
#include "worker/collective/split_messages.h"

namespace lockstep::worker {
namespace {

using FirstReads = std::optional<std::vector<bool>>;

// Element by element.
FirstReads ExpectedFirstReads(const Schedule& schedule, int rank) {
  std::vector<bool> written(schedule.length());
  std::vector<bool> first_reads;
  for (const Operation& operation : schedule.operations(rank)) {
    const auto begin = written.begin() + static_cast<ptrdiff_t>(operation.range.first);
    const auto end = begin + static_cast<ptrdiff_t>(operation.range.count);
    const auto terms = schedule.terms(rank, operation);
    const bool reads = operation.kind == Operation::Kind::kSend ||
                       std::ranges::any_of(terms, [](const Term& t) { return t.message < 0; });
    const bool is_first = std::none_of(begin, end, [](bool is_written) { return is_written; });
    if (reads && !is_first && !std::all_of(begin, end, [](bool w) { return w; })) return {};
    first_reads.push_back(reads && is_first);
    if (operation.kind != Operation::Kind::kSend) std::fill(begin, end, true);
  }
  if (std::ranges::find(written, false) != written.end()) return {};
  return first_reads;
}

// Rank 0 of a ring of two sends elements [2, 4), adds to [0, 2), sends the sum, receives [2, 4).
TEST_CASE("a ring reads first elements in its first send and its first sum") {
  ScheduleSpec spec{ReductionAlgorithm::kXring, {2, 1}};
  spec.length = 4;
  const Schedule schedule = *MakeSchedule(spec);
  CHECK(FindFirstReads(schedule, 0) == std::vector<bool>{true, true, false, false});
}

TEST_CASE("first reads are those of every element, whole messages or cut ones") {
  size_t found = 0;
  for (ScheduleSpec spec : conformance::CollectiveCases()) {
    spec.length = 41;
    const Schedule whole = MakeSchedule(spec).value();
    for (const Schedule& schedule : {whole, SplitMessages(whole, 3)}) {
      for (int rank = 0; rank < schedule.num_participants(); ++rank) {
        const FirstReads reads = FindFirstReads(schedule, rank);
        if (reads.has_value()) ++found;
        if (reads != ExpectedFirstReads(schedule, rank)) {
          FAIL(conformance::Describe(spec) << ", rank " << rank);
        }
      }
    }
  }
  CHECK(found > 0);
}

}  // namespace
}  // namespace lockstep::worker
