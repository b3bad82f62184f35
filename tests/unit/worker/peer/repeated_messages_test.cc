// Messages to a member that does not take them.
#include <atomic>
#include <catch2/catch.hpp>

#include "tests/support/manual_time.h"
#include "tests/unit/worker/peer/peers_for_tests.h"
#include "worker/peer/member_connection.h"

namespace lockstep::worker {
namespace {

// To a member that is there, and takes no messages yet.
class LateMember final : public MemberConnection {
 public:
  explicit LateMember(std::atomic<int>* sent) : sent_(sent) {}
  void Send(SendRequest, std::span<const std::byte>, StatusCallback done) override {
    ++*sent_;
    done(NotJoined());
  }
  void Compare(CompareRequest, StatusCallback done) override { done(absl::OkStatus()); }
  void Probe(ProbeRequest, Callback<ProbeReply> done) override { done(NotJoined()); }
  void ReadState(ReadStateRequest, Callback<ReadStateReply> done) override { done(NotJoined()); }
  void Cancel() override {}

 private:
  static absl::Status NotJoined() { return absl::FailedPreconditionError("not in the view yet"); }

  std::atomic<int>* const sent_;
};

// A reduction with such a member.
struct Waiting {
  Waiting() {
    PeerGroupReducerOptions options =
        workers.OptionsFor(workers.GroupOf(2, 1, 0), ReductionOver(2, 9));
    options.timer = &time;
    options.clock = &time;
    options.connect = [this](const Group::Member&) { return std::make_unique<LateMember>(&sent); };
    reducer = PeerGroupReducer::Create(options, workers.service(0)).value();
    reducing.emplace(reducer.get(), 9);
  }
  void Pass(absl::Duration time_to_pass) {
    constexpr absl::Duration kTick = absl::Milliseconds(10);
    for (absl::Duration t; t < time_to_pass; t += kTick) time.Advance(kTick);
  }

  std::atomic<int> sent = 0;
  test::PeerWorkers workers{2};
  test::ManualTime time;
  std::optional<Reducing> reducing;  // is told by the reducer when that one goes
  std::unique_ptr<PeerGroupReducer> reducer;
};

TEST_CASE("a member that does not join gets a payload once a second in the end") {
  Waiting f;
  CHECK(f.sent == 1);
  f.Pass(absl::Seconds(4));
  CHECK(f.sent <= 10);
  f.sent = 0;
  f.Pass(absl::Seconds(10));
  CHECK(f.sent >= 9);
  CHECK(f.sent <= 10);
  CHECK_FALSE(f.reducing->is_over());
}

TEST_CASE("a reduction that fails does not wait for the end of a pause") {
  Waiting f;
  f.Pass(absl::Seconds(4));
  f.reducer->Cancel(absl::CancelledError("enough"));
  CHECK(f.reducing->is_over());
  CHECK(absl::IsCancelled(f.reducing->Wait()));
}

}  // namespace
}  // namespace lockstep::worker
