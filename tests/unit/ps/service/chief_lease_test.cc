#include "ps/service/chief_lease.h"

#include <catch2/catch.hpp>

namespace lockstep::ps {
namespace {

constexpr LeaseHolder Holder(uint64_t term, uint64_t chief) {
  return {.term = Term(term),
          .chief = Incarnation(chief),
          .index = static_cast<uint32_t>(chief),
          .length = absl::Seconds(2)};
}

TEST_CASE("a lease ends when its holder has been silent for its length") {
  ChiefLease lease;
  CHECK(lease.Status(absl::ZeroDuration()).state() == CommandStatus::NONE);
  CHECK(lease.Left(absl::ZeroDuration()) == absl::InfiniteDuration());
  lease.Renew(Holder(3, 1), absl::Seconds(100));
  const CommandStatus held = lease.Status(absl::Milliseconds(101'500));
  CHECK(held.state() == CommandStatus::HELD);
  CHECK(held.term() == 3);
  CHECK(held.chief() == 1);
  CHECK(held.chief_index() == 1);
  CHECK(held.lease_ms() == 2000);
  CHECK(held.left_ms() == 500);
  lease.Renew(Holder(3, 1), absl::Milliseconds(101'500));
  CHECK(lease.Left(absl::Seconds(102)) == absl::Milliseconds(1500));
  CHECK(lease.Status(absl::Milliseconds(103'499)).state() == CommandStatus::HELD);
  const CommandStatus expired = lease.Status(absl::Milliseconds(103'500));
  CHECK(expired.state() == CommandStatus::EXPIRED);
  CHECK(expired.term() == 3);
  CHECK(expired.left_ms() == 0);
}

TEST_CASE("a lease that has ended is renewed by a holder that nobody has followed") {
  ChiefLease lease;
  lease.Renew(Holder(3, 1), absl::Seconds(1));
  lease.Renew(Holder(3, 1), absl::Seconds(60));
  CHECK(lease.Status(absl::Seconds(61)).state() == CommandStatus::HELD);
}

TEST_CASE("a higher term takes a lease that is held, an older chief takes none back") {
  ChiefLease lease;
  lease.Renew(Holder(3, 1), absl::Seconds(1));
  lease.Renew(Holder(4, 2), absl::Seconds(1));
  CHECK(lease.Status(absl::Seconds(1)).chief() == 2);
  lease.Renew(Holder(3, 1), absl::Seconds(2));
  lease.Renew(Holder(4, 1), absl::Seconds(2));
  CHECK(lease.Status(absl::Seconds(2)).chief() == 2);
  CHECK(lease.Left(absl::Seconds(2)) == absl::Seconds(1));
  lease.Renew(Holder(3, 1), absl::Seconds(9));
  CHECK(lease.Status(absl::Seconds(9)).state() == CommandStatus::EXPIRED);
}

TEST_CASE("a lower term of the same chief counts, as at a ps that was started again") {
  ChiefLease lease;
  lease.Renew(Holder(5, 1), absl::Seconds(1));
  lease.Renew(Holder(1, 1), absl::Seconds(2));
  CHECK(lease.Status(absl::Seconds(2)).term() == 1);
  CHECK(lease.Left(absl::Seconds(2)) == absl::Seconds(2));
}

TEST_CASE("a chief that releases its lease has none any more, the next one has") {
  ChiefLease lease;
  lease.Renew(Holder(3, 1), absl::Seconds(1));
  lease.Release(Incarnation(2));
  CHECK(lease.Status(absl::Seconds(1)).state() == CommandStatus::HELD);
  lease.Release(Incarnation(1));
  CHECK(lease.Status(absl::Seconds(1)).state() == CommandStatus::RELEASED);
  lease.Renew(Holder(3, 1), absl::Seconds(1));  // was under way
  CHECK(lease.Status(absl::Seconds(1)).state() == CommandStatus::RELEASED);
  lease.Renew(Holder(4, 2), absl::Seconds(1));
  CHECK(lease.Status(absl::Seconds(1)).state() == CommandStatus::HELD);
}

TEST_CASE("the end of the job is told with its code and reason, until another chief commands") {
  ChiefLease lease;
  lease.Renew(Holder(3, 1), absl::Seconds(1));
  lease.EndJob(Incarnation(2), 70, "not its to say");
  CHECK(lease.Status(absl::Seconds(1)).state() == CommandStatus::HELD);
  lease.EndJob(Incarnation(1), 138, "too few workers");
  const CommandStatus over = lease.Status(absl::Hours(1));
  CHECK(over.state() == CommandStatus::JOB_OVER);
  CHECK(over.exit_code() == 138);
  CHECK(over.reason() == "too few workers");
  lease.Renew(Holder(4, 2), absl::Hours(1));
  CHECK(lease.Status(absl::Hours(1)).state() == CommandStatus::HELD);
}

TEST_CASE("a job that a ps never had is over as well") {
  ChiefLease lease;
  lease.EndJob(0, "");
  CHECK(lease.Status(absl::Seconds(1)).state() == CommandStatus::JOB_OVER);
  CHECK(lease.Status(absl::Seconds(1)).exit_code() == 0);
}

TEST_CASE("the lease of a chief that names no length does not end") {
  ChiefLease lease;
  lease.Renew({.term = Term(1), .chief = Incarnation(1), .length = absl::InfiniteDuration()},
              absl::Seconds(1));
  CHECK(lease.Status(absl::Hours(1000)).state() == CommandStatus::HELD);
  CHECK(lease.Status(absl::Hours(1000)).lease_ms() == 0);
  CHECK(lease.Left(absl::Hours(1000)) == absl::InfiniteDuration());
}

}  // namespace
}  // namespace lockstep::ps
