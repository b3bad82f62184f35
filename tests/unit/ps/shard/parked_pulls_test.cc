// Pulls that wait: who finds them, who withdraws them, and how many may.
#include "ps/shard/parked_pulls.h"

#include <catch2/catch.hpp>

#include "common/base/limits.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::OneVariable;
using test::PlacementOf;
using test::PlanOf;
using test::Reply;

ParkedPull PullOf(uint32_t worker, int64_t version, std::vector<ResolvedPiece> pieces,
                  const Reply<PullResult>& reply) {
  return {.worker = IdentityOf(worker),
          .version = GlobalStep(version),
          .pieces = std::make_shared<const std::vector<ResolvedPiece>>(std::move(pieces)),
          .done = reply.done()};
}

PullResult Anything(ParkedPull*) { return {}; }

class Waiting {
 public:
  absl::StatusOr<uint64_t> Park(ParkedPull pull, const AwaitedPart& part) {
    auto parked = pulls.Park(&pull, part, &outbox_);
    outbox_.Run();
    return parked;
  }
  void Retry(const AwaitedPart& part,
             absl::FunctionRef<ParkedPulls::Attempt(ParkedPull*)> attempt) {
    pulls.Retry(part, attempt, &outbox_);
    outbox_.Run();
  }
  void Cancel(uint64_t number) {
    pulls.Cancel(number, &outbox_);
    outbox_.Run();
  }

  ParkedPulls pulls;

 private:
  DeferredCallbacks outbox_;
};

TEST_CASE("what becomes readable tries the pulls that wait for it, and no others") {
  constexpr size_t kPulls = 10'000;
  Waiting waiting;
  const Reply<PullResult> reply;
  for (size_t variable = 0; variable < kPulls; ++variable) {
    REQUIRE(waiting.Park(PullOf(0, 1, {{.variable = variable}}, reply), {GlobalStep(1), variable})
                .ok());
  }
  size_t attempts = 0;
  for (size_t variable = 0; variable < kPulls; ++variable) {
    const auto attempt = [&](ParkedPull* pull) {
      ++attempts;
      CHECK(pull->pieces->front().variable == variable);
      return PullResult();
    };
    waiting.Retry({GlobalStep(1), variable}, attempt);
  }
  CHECK(attempts == kPulls);
  CHECK(reply.calls() == kPulls);
  CHECK(waiting.pulls.size() == 0);
  CHECK(waiting.pulls.num_bytes() == 0);
}

TEST_CASE("what a pull's caller keeps counts as what the pull names") {
  Waiting waiting;
  const Reply<PullResult> reply;
  const auto park = [&](int64_t version, uint64_t kept_bytes) {
    ParkedPull pull = PullOf(0, version, {{0}}, reply);
    pull.kept_bytes = kept_bytes;
    return waiting.Park(std::move(pull), {GlobalStep(version), 0}).status();
  };
  constexpr uint64_t kHalf = limits::kMaxParkedBytesOfWorker / 2;
  REQUIRE(park(1, kHalf).ok());
  CHECK(absl::IsResourceExhausted(park(2, kHalf)));
  CHECK(park(2, kHalf / 2).ok());
  waiting.Retry({GlobalStep(1), 0}, Anything);
  waiting.Retry({GlobalStep(2), 0}, Anything);
  CHECK(waiting.pulls.num_bytes() == 0);
}

TEST_CASE("a pull that lacks another part waits on for that, in its order") {
  Waiting waiting;
  const Reply<PullResult> first;
  const Reply<PullResult> second;
  const AwaitedPart a{GlobalStep(1), 0};
  const AwaitedPart b{GlobalStep(1), 1, 3};
  REQUIRE(waiting.Park(PullOf(0, 1, {{0}, {1}}, first), a).ok());
  REQUIRE(waiting.Park(PullOf(1, 1, {{0}, {1}}, second), a).ok());
  waiting.Retry(b, Anything);
  CHECK(first.IsParked());
  waiting.Retry(a, [&](ParkedPull*) { return b; });
  CHECK(first.IsParked());
  waiting.Retry(a, Anything);
  CHECK(waiting.pulls.size() == 2);
  std::vector<uint32_t> arguments;
  waiting.Retry(b, [&](ParkedPull* pull) {
    arguments.push_back(pull->worker.worker.value());
    return PullResult();
  });
  CHECK(arguments == std::vector<uint32_t>{0, 1});
  CHECK(first.status().ok());
  CHECK(second.calls() == 1);
}

TEST_CASE("a pull that is withdrawn is answered once, and only by its own number") {
  Waiting waiting;
  const Reply<PullResult> first;
  const Reply<PullResult> middle;
  const Reply<PullResult> last;
  const AwaitedPart part{GlobalStep(1), 0};
  REQUIRE(waiting.Park(PullOf(0, 1, {{0}}, first), part).ok());
  const auto number = waiting.Park(PullOf(1, 1, {{0}}, middle), part);
  REQUIRE(number.ok());
  REQUIRE(waiting.Park(PullOf(2, 1, {{0}}, last), part).ok());
  waiting.Cancel(*number);
  CHECK(absl::IsCancelled(middle.status()));
  const Reply<PullResult> newer;
  REQUIRE(waiting.Park(PullOf(3, 1, {{0}}, newer), part).ok());
  waiting.Cancel(*number);
  CHECK(newer.IsParked());
  waiting.Retry(part, Anything);
  for (const Reply<PullResult>* reply : {&first, &middle, &last, &newer}) {
    CHECK(reply->calls() == 1);
  }
}

TEST_CASE("a worker's pulls wait in bounded memory, and others beside them") {
  Waiting waiting;
  const Reply<PullResult> reply;
  const std::vector<int64_t> rows(200'000);
  const uint64_t most = limits::kMaxParkedBytesOfWorker / (rows.size() * sizeof(int64_t));
  const auto park = [&](uint32_t worker, int64_t version) {
    return waiting
        .Park(PullOf(worker, version, {{.size = 8, .rows = rows, .is_sparse = true}}, reply),
              {GlobalStep(version), 0})
        .status();
  };
  for (uint64_t i = 0; i < most; ++i) REQUIRE(park(0, static_cast<int64_t>(i)).ok());
  CHECK(absl::IsResourceExhausted(park(0, 1'000)));
  CHECK(reply.calls() == 0);
  CHECK(park(1, 1'000).ok());
  CHECK(waiting.pulls.num_bytes() <= 2 * limits::kMaxParkedBytesOfWorker);
  // Issued again, it takes the room of its predecessor.
  CHECK(park(0, 0).ok());
  CHECK(reply.calls() == 1);
}

TEST_CASE("so many pulls of a worker wait, however little they name") {
  Waiting waiting;
  const Reply<PullResult> reply;
  const auto park = [&](uint32_t worker, int64_t version) {
    return waiting.Park(PullOf(worker, version, {{.size = 8}}, reply), {GlobalStep(version), 0})
        .status();
  };
  size_t parked = 0;
  while (parked <= limits::kMaxParkedPullsOfWorker && park(0, static_cast<int64_t>(parked)).ok()) {
    ++parked;
  }
  CHECK(parked == limits::kMaxParkedPullsOfWorker);
  CHECK(absl::IsResourceExhausted(park(0, static_cast<int64_t>(parked))));
  CHECK(park(1, 0).ok());
}

TEST_CASE("so many pulls of all workers wait, however little they name") {
  Waiting waiting;
  const Reply<PullResult> reply;
  const auto park = [&](uint32_t worker, int64_t version) {
    return waiting.Park(PullOf(worker, version, {{.size = 8}}, reply), {GlobalStep(version), 0})
        .status();
  };
  constexpr size_t kWorkers = 4;
  constexpr size_t kOfEach = limits::kMaxParkedPulls / kWorkers;
  static_assert(kOfEach < limits::kMaxParkedPullsOfWorker);
  for (size_t i = 0; i < limits::kMaxParkedPulls; ++i) {
    REQUIRE(park(i % kWorkers, static_cast<int64_t>(i / kWorkers)).ok());
  }
  CHECK(absl::IsResourceExhausted(park(kWorkers, 0)));
  CHECK(reply.calls() == 0);
}

TEST_CASE("the pulls of all workers together wait in bounded memory") {
  Waiting waiting;
  const Reply<PullResult> reply;
  const std::vector<int64_t> rows(limits::kMaxParkedBytesOfWorker / sizeof(int64_t) - 1'000);
  const uint64_t most = limits::kMaxParkedBytes / (rows.size() * sizeof(int64_t));
  absl::Status last;
  uint32_t worker = 0;
  for (; worker <= most && last.ok(); ++worker) {
    last = waiting
               .Park(PullOf(worker, 9, {{.size = 8, .rows = rows, .is_sparse = true}}, reply),
                     {GlobalStep(9), 0})
               .status();
  }
  CHECK(absl::IsResourceExhausted(last));
  CHECK(worker > most / 2);
}

TEST_CASE("a caller that goes away leaves no pull behind") {
  Harness h(OneVariable());
  for (int i = 0; i < 100; ++i) {
    Reply<PullResult> reply;
    const auto ticket = std::make_shared<PullTicket>();
    PullArguments arguments{IdentityOf(0), GlobalStep(int64_t{1} << 40), {{VariableId(0)}}};
    arguments.ticket = ticket;
    h.shard.Pull(arguments, reply.done());
    REQUIRE(reply.IsParked());
    h.shard.CancelPull(ticket.get());
    CHECK(absl::IsCancelled(reply.status()));
    h.shard.CancelPull(ticket.get());
    CHECK(reply.calls() == 1);
  }
  CHECK(h.shard.Report().waiting_pulls == 0);
}

TEST_CASE("a caller that goes away before its pull parks leaves nothing behind") {
  Harness h(OneVariable());
  const auto ticket = std::make_shared<PullTicket>();
  h.shard.CancelPull(ticket.get());
  Reply<PullResult> pull;
  PullArguments arguments{IdentityOf(0), GlobalStep(1), {{VariableId(0)}}};
  arguments.ticket = ticket;
  h.shard.Pull(arguments, pull.done());
  CHECK(absl::IsCancelled(pull.status()));
}

}  // namespace
}  // namespace lockstep::ps
