#include "ps/ledger/push_ledger.h"

#include <catch2/catch.hpp>
#include <limits>

#include "common/base/limits.h"

namespace lockstep::ps {
namespace {

constexpr size_t kVariables = 2;

PushKey Key(uint32_t worker, uint64_t incarnation, uint64_t push_seq) {
  return {WorkerIndex(worker), Incarnation(incarnation), PushSeq(push_seq)};
}

PushLedger::Age Open(PushLedger* ledger, const PushKey& key, int64_t stamp = 0) {
  const auto age = ledger->Open(key, GlobalStep(stamp));
  REQUIRE(age.ok());
  return *age;
}

TEST_CASE("a repeated push gets the verdict of the first time") {
  PushLedger ledger(kVariables);
  const PushKey key = Key(1, 11, 1);
  CHECK(Open(&ledger, key) == PushLedger::Age::kNew);
  CHECK(ledger.Find(key, 0) == PushStatus::kPending);
  ledger.Record(key, 0, PushStatus::kAccepted);
  ledger.Record(key, 1, PushStatus::kStale);
  CHECK(Open(&ledger, key) == PushLedger::Age::kCurrent);
  CHECK(ledger.Find(key, 0) == PushStatus::kAccepted);
  CHECK(ledger.Find(key, 1) == PushStatus::kStale);
  ledger.Record(key, 0, PushStatus::kStale);
  CHECK(ledger.Find(key, 0) == PushStatus::kAccepted);
}

TEST_CASE("what a push left undecided never counts once a newer one began") {
  PushLedger ledger(kVariables);
  Open(&ledger, Key(1, 11, 1));
  ledger.Record(Key(1, 11, 1), 0, PushStatus::kAccepted);
  CHECK(Open(&ledger, Key(1, 11, 2)) == PushLedger::Age::kNew);
  CHECK(Open(&ledger, Key(1, 11, 1)) == PushLedger::Age::kOver);
  CHECK(ledger.Find(Key(1, 11, 1), 0) == PushStatus::kAccepted);
  CHECK(ledger.Find(Key(1, 11, 1), 1) == PushStatus::kStale);
  CHECK(ledger.Find(Key(1, 11, 2), 1) == PushStatus::kPending);
}

TEST_CASE("a forgotten variable is undecided from its step on, and keeps its earlier verdicts") {
  PushLedger ledger(kVariables);
  for (const uint64_t seq : {1, 2, 3}) {
    Open(&ledger, Key(1, 11, seq), seq == 1 ? 0 : 1);
    for (size_t variable = 0; variable < kVariables; ++variable) {
      ledger.Record(Key(1, 11, seq), variable, PushStatus::kAccepted);
    }
  }
  ledger.Forget({WorkerIndex(2)}, 0, GlobalStep(1));
  CHECK(ledger.Find(Key(1, 11, 3), 0) == PushStatus::kAccepted);
  ledger.Forget({WorkerIndex(1)}, 0, GlobalStep(1));
  CHECK(ledger.Find(Key(1, 11, 1), 0) == PushStatus::kAccepted);
  CHECK(ledger.Find(Key(1, 11, 2), 0) == PushStatus::kStale);  // given up for the third
  CHECK(ledger.Find(Key(1, 11, 3), 0) == PushStatus::kPending);
  CHECK(ledger.Find(Key(1, 11, 3), 1) == PushStatus::kAccepted);
}

TEST_CASE("the towers of a worker count pushes of their own") {
  PushLedger ledger(kVariables);
  PushKey first = Key(1, 11, 7), second = Key(1, 11, 1);
  second.tower = 1;
  CHECK(Open(&ledger, first, 5) == PushLedger::Age::kNew);
  CHECK(Open(&ledger, second, 3) == PushLedger::Age::kNew);
  ledger.Record(second, 0, PushStatus::kAccepted);
  CHECK(ledger.Find(first, 0) == PushStatus::kPending);
  CHECK(Open(&ledger, first, 5) == PushLedger::Age::kCurrent);
  CHECK(ledger.NewestLocalStep(WorkerIndex(1), Incarnation(11)) == GlobalStep(5));
}

TEST_CASE("pushes beyond the window are over") {
  PushLedger ledger(kVariables);
  for (uint64_t seq = 1; seq <= 10; ++seq) {
    Open(&ledger, Key(1, 11, seq), static_cast<int64_t>(seq));
    ledger.Record(Key(1, 11, seq), 0, PushStatus::kAccepted);
  }
  for (uint64_t seq = 1; seq <= 10; ++seq) {
    const bool is_remembered = seq > 10 - PushLedger::kWindow;
    CHECK(ledger.Find(Key(1, 11, seq), 0) ==
          (is_remembered ? PushStatus::kAccepted : PushStatus::kStale));
  }
  CHECK(Open(&ledger, Key(1, 11, 2), 2) == PushLedger::Age::kOver);
  ledger.Record(Key(1, 11, 2), 1, PushStatus::kAccepted);
  CHECK(ledger.Find(Key(1, 11, 2), 1) == PushStatus::kStale);
}

TEST_CASE("sequence numbers may jump") {
  PushLedger ledger(kVariables);
  Open(&ledger, Key(1, 11, 1));
  CHECK(Open(&ledger, Key(1, 11, 1 + 3 * PushLedger::kWindow)) == PushLedger::Age::kNew);
  CHECK(ledger.Find(Key(1, 11, 1), 0) == PushStatus::kStale);
  CHECK(ledger.Find(Key(1, 11, 5), 0) == PushStatus::kStale);
}

TEST_CASE("a push too far ahead is refused, and nothing is noted of it") {
  PushLedger ledger(kVariables);
  const auto open = [&](uint64_t incarnation, uint64_t push_seq) {
    return ledger.Open(Key(1, incarnation, push_seq), GlobalStep(0)).status();
  };
  CHECK(open(11, limits::kMaxPushSeq + 1).code() == absl::StatusCode::kOutOfRange);
  CHECK_FALSE(ledger.NewestLocalStep(WorkerIndex(1), Incarnation(11)).has_value());
  // A worker whose variables were created anew goes on counting.
  CHECK(open(11, 1'000'000).ok());
  CHECK(open(11, 1'000'000 + limits::kMaxPushSeqGap + 1).code() == absl::StatusCode::kOutOfRange);
  CHECK(open(12, std::numeric_limits<uint64_t>::max()).code() == absl::StatusCode::kOutOfRange);
  CHECK(ledger.Find(Key(1, 11, 1'000'000), 0) == PushStatus::kPending);
  CHECK(open(11, 1'000'000 + limits::kMaxPushSeqGap).ok());
}

TEST_CASE("a push may be further ahead for each step of which a shard heard nothing") {
  PushLedger ledger(kVariables);
  const auto open = [&](uint64_t push_seq, int64_t local_step) {
    return ledger.Open(Key(1, 11, push_seq), GlobalStep(local_step)).status();
  };
  CHECK(open(1, 0).ok());
  const uint64_t most = 1 + 4 * limits::kMaxPushSeqGap;
  CHECK(open(most + 1, 3).message() ==
        "push_seq of worker 1: expected at most 4001 at step 3 after 1 at step 0, got 4002. "
        "Remedy: count pushes one by one");
  CHECK(open(most, 3).ok());
  // An earlier step, from an asynchronous job's tower, and one beyond all.
  CHECK(open(most + limits::kMaxPushSeqGap + 1, 2).code() == absl::StatusCode::kOutOfRange);
  CHECK(open(most + limits::kMaxPushSeqGap, 2).ok());
  const int64_t last = std::numeric_limits<int64_t>::max();
  CHECK(open(limits::kMaxPushSeq + 1, last).code() == absl::StatusCode::kOutOfRange);
  CHECK(open(limits::kMaxPushSeq, last).ok());
}

TEST_CASE("one push has one stamp") {
  PushLedger ledger(kVariables);
  Open(&ledger, Key(1, 11, 1), 7);
  const auto age = ledger.Open(Key(1, 11, 1), GlobalStep(8));
  CHECK(age.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(age.status().message() == "push 1 of worker 1 had local_step 7 before and has 8 now");
}

TEST_CASE("workers and incarnations do not know one another's pushes") {
  PushLedger ledger(kVariables);
  Open(&ledger, Key(1, 11, 5), 4);
  ledger.Record(Key(1, 11, 5), 0, PushStatus::kAccepted);
  Open(&ledger, Key(2, 22, 5), 4);
  CHECK(ledger.Find(Key(2, 22, 5), 0) == PushStatus::kPending);
  CHECK(ledger.NewestLocalStep(WorkerIndex(1), Incarnation(11)) == GlobalStep(4));
  CHECK_FALSE(ledger.NewestLocalStep(WorkerIndex(1), Incarnation(12)).has_value());
  // A successor starts afresh.
  CHECK(Open(&ledger, Key(1, 12, 1), 6) == PushLedger::Age::kNew);
  CHECK(ledger.Find(Key(1, 12, 1), 0) == PushStatus::kPending);
  CHECK(ledger.Find(Key(1, 11, 5), 0) == PushStatus::kStale);
  CHECK(ledger.NewestLocalStep(WorkerIndex(1), Incarnation(12)) == GlobalStep(6));
}

}  // namespace
}  // namespace lockstep::ps
