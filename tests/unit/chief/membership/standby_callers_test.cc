#include "chief/membership/standby_callers.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

const WorkerIndex kWorker(3);
const Incarnation kFirst(11), kSecond(22);

absl::Duration At(double seconds) { return absl::Seconds(seconds); }

TEST_CASE("of each process of a worker the first and the last call are noted") {
  StandbyCallers callers;
  callers.RecordCall(kWorker, kFirst, At(1));
  callers.RecordCall(kWorker, kFirst, At(2));
  callers.RecordCall(kWorker, kSecond, At(3));
  callers.RecordCall(kWorker, kFirst, At(4));
  const ProcessCalls calls = callers.Of(kWorker, At(5));
  REQUIRE(calls.size() == 2);
  CHECK(calls.at(kFirst).first == At(1));
  CHECK(calls.at(kFirst).last == At(4));
  CHECK(calls.at(kSecond).first == At(3));
  CHECK(callers.Of(WorkerIndex(4), At(5)).empty());
}

TEST_CASE("a process that has not called for 10 seconds is forgotten") {
  StandbyCallers callers;
  callers.RecordCall(kWorker, kFirst, At(1));
  callers.RecordCall(kWorker, kFirst, At(11));
  CHECK(callers.Of(kWorker, At(21)).at(kFirst).first == At(1));
  CHECK(callers.Of(kWorker, At(21.5)).empty());
  callers.RecordCall(kWorker, kFirst, At(21.5));
  CHECK(callers.Of(kWorker, At(22)).at(kFirst).first == At(21.5));
}

TEST_CASE("of processes without number, and of workers, a limited number is noted") {
  StandbyCallers callers;
  for (uint64_t i = 0; i < 2 * StandbyCallers::kMaxProcesses; ++i) {
    callers.RecordCall(kWorker, Incarnation(i), At(1));
  }
  CHECK(callers.Of(kWorker, At(1)).size() == StandbyCallers::kMaxProcesses);
  callers.RecordCall(kWorker, Incarnation(0), At(2));
  CHECK(callers.Of(kWorker, At(2)).at(Incarnation(0)).last == At(2));
  const uint32_t last = 100 + StandbyCallers::kMaxWorkers - 1;
  for (uint32_t i = 100; i <= last; ++i) callers.RecordCall(WorkerIndex(i), kFirst, At(1));
  CHECK(callers.Of(WorkerIndex(last - 1), At(1)).size() == 1);
  CHECK(callers.Of(WorkerIndex(last), At(1)).empty());
}

}  // namespace
}  // namespace lockstep::chief
