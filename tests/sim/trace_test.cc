// A seed is the whole of a simulation: run twice, it does the same.
#include "tests/sim/trace.h"

#include <catch2/catch.hpp>
#include <set>

#include "common/log/log.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

constexpr uint64_t kSeeds = 6;

uint64_t HashOf(const Scenario& scenario, uint64_t seed) {
  SimRun run;
  CHECK(Simulate({&scenario, seed}, &run) == "");
  return run.trace.hash();
}

TEST_CASE("a seed that is run twice gives one trace, and two seeds give two") {
  REQUIRE(log::Init("simulation", "error").ok());
  for (const Scenario& scenario : Scenarios()) {
    CAPTURE(scenario.name);
    std::set<uint64_t> hashes;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const uint64_t hash = HashOf(scenario, seed);
      CHECK(HashOf(scenario, seed) == hash);
      hashes.insert(hash);
    }
    CHECK(hashes.size() == kSeeds);
  }
}

TEST_CASE("a trace tells events of another time, kind, end, order or fault apart") {
  const Node worker{Role::kWorker, 1};
  const Node ps{Role::kPs, 1};
  const auto hash = [](auto note) {
    Trace trace;
    note(&trace);
    return trace.hash();
  };
  const std::set<uint64_t> hashes = {
      hash([&](Trace* t) {
        t->NoteEvent(absl::Seconds(1), EventKind::kRequest, {worker, ps});
      }),
      hash([&](Trace* t) {
        t->NoteEvent(absl::Seconds(2), EventKind::kRequest, {worker, ps});
      }),
      hash([&](Trace* t) {
        t->NoteEvent(absl::Seconds(1), EventKind::kReply, {worker, ps});
      }),
      hash([&](Trace* t) {
        t->NoteEvent(absl::Seconds(1), EventKind::kRequest, {ps, worker});
      }),
      hash([&](Trace* t) {
        t->NoteFault(Fault::kLostReply);
        t->NoteFault(Fault::kLateRequest);
      }),
      hash([&](Trace* t) {
        t->NoteFault(Fault::kLateRequest);
        t->NoteFault(Fault::kLostReply);
      }),
  };
  CHECK(hashes.size() == 6);
}

}  // namespace
}  // namespace lockstep::sim
