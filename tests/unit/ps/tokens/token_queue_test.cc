#include "ps/tokens/token_queue.h"

#include <catch2/catch.hpp>
#include <map>

#include "tests/support/growth.h"

namespace lockstep::ps {
namespace {

// What each call was answered: a step, or one of these.
constexpr int64_t kDone = -1;
constexpr int64_t kUnavailable = -2;
constexpr int64_t kAborted = -3;
constexpr int64_t kRefused = -4;
using Told = std::map<DequeueCall, int64_t>;

Told Tell(const TokenQueue::Answers& answers) {
  Told told;
  for (const TokenQueue::Answer& answer : answers) {
    int64_t what = 0;
    if (answer.handout.ok()) {
      what = answer.handout->done ? kDone : answer.handout->step.value();
    } else if (absl::IsUnavailable(answer.handout.status())) {
      what = kUnavailable;
    } else {
      what = absl::IsAborted(answer.handout.status()) ? kAborted : kRefused;
    }
    REQUIRE(told.emplace(answer.call, what).second);
  }
  return told;
}

DequeueKey Key(uint32_t worker, uint64_t seq, uint64_t incarnation = 1) {
  return {WorkerIndex(worker), Incarnation(incarnation), DequeueSeq(seq)};
}

class Desk {
 public:
  explicit Desk(std::unique_ptr<TokenPolicy> policy) : desk(std::move(policy)) {}
  Told Dequeue(const DequeueKey& key, DequeueCall call) {
    return Tell(desk.Dequeue(key, call, std::nullopt));
  }
  Told Commit(int64_t step) { return Tell(desk.Commit(GlobalStep(step))); }

  TokenQueue desk;
};

TEST_CASE("the same dequeue again gets the same token, whatever happened since") {
  Desk desk(MakeFifoTokens(GlobalStep(0), 1, 1));
  CHECK(desk.Dequeue(Key(0, 1), 100) == Told{{100, 0}});
  desk.Commit(1);
  desk.Commit(2);
  CHECK(desk.Dequeue(Key(0, 1), 101) == Told{{101, 0}});
  CHECK(desk.Dequeue(Key(0, 2), 102) == Told{{102, 1}});
  CHECK(desk.Dequeue(Key(0, 2), 103) == Told{{103, 1}});
  CHECK(desk.Dequeue(Key(0, 1), 104) == Told{{104, kRefused}});
  CHECK(desk.Dequeue(Key(0, 3), 105) == Told{{105, 2}});
}

TEST_CASE("a dequeue issued again takes the place of the one that waits, and its place in line") {
  Desk desk(MakeFifoTokens(GlobalStep(0), 0, 1));
  CHECK(desk.Dequeue(Key(0, 1), 100).empty());
  CHECK(desk.Dequeue(Key(1, 1), 200).empty());
  CHECK(desk.Dequeue(Key(0, 1), 101) == Told{{100, kUnavailable}});
  CHECK(desk.desk.num_waiting() == 2);
  CHECK(desk.Commit(1) == Told{{101, 1}});
  CHECK(desk.Commit(2) == Told{{200, 2}});
}

TEST_CASE("a newer dequeue ends the wait of an older one and goes to the end of the line") {
  Desk desk(MakeFifoTokens(GlobalStep(0), 0, 1));
  desk.Dequeue(Key(0, 1), 100);
  desk.Dequeue(Key(1, 1), 200);
  CHECK(desk.Dequeue(Key(0, 2), 101) == Told{{100, kUnavailable}});
  CHECK(desk.Commit(1) == Told{{200, 1}});
  CHECK(desk.Commit(2) == Told{{101, 2}});
}

TEST_CASE("an older dequeue that came first costs the newer one no token") {
  Desk desk(MakePerReplicaTokens(GlobalStep(0)));
  desk.Commit(8);
  // At a ps that knows nothing of this replica, which asks after the token of 7 since.
  CHECK(Tell(desk.desk.Dequeue(Key(0, 6), 100, std::nullopt, GlobalStep(5))) == Told{{100, 8}});
  CHECK(Tell(desk.desk.Dequeue(Key(0, 8), 101, std::nullopt, GlobalStep(7))) == Told{{101, 8}});
  CHECK(Tell(desk.desk.Dequeue(Key(0, 8), 102, std::nullopt, GlobalStep(7))) == Told{{102, 8}});
  CHECK(desk.desk.Dequeue(Key(0, 9), 103, std::nullopt, GlobalStep(8)).empty());
  CHECK(desk.Commit(9) == Told{{103, 9}});
}

TEST_CASE("waiting calls of replicas outside the view are answered and take no token") {
  Desk desk(MakeFifoTokens(GlobalStep(0), 0, 1));
  desk.Dequeue(Key(0, 1), 100);
  desk.Dequeue(Key(1, 1), 200);
  desk.Dequeue(Key(2, 1), 300);
  const std::pair<WorkerIndex, Incarnation> members[] = {{WorkerIndex(1), Incarnation(2)},
                                                         {WorkerIndex(2), Incarnation(1)}};
  CHECK(Tell(desk.desk.SetView(members)) == Told{{100, kAborted}, {200, kAborted}});
  CHECK(desk.Commit(1) == Told{{300, 1}});
  // Back in the view, the replica may ask under the same number.
  CHECK(desk.Dequeue(Key(0, 1), 101).empty());
  CHECK(desk.Commit(2) == Told{{101, 2}});
}

TEST_CASE("a new incarnation starts counting from one and ends its predecessor's wait") {
  Desk desk(MakePerReplicaTokens(GlobalStep(0)));
  desk.Commit(1);
  CHECK(desk.Dequeue(Key(0, 7, 1), 100) == Told{{100, 1}});
  CHECK(desk.Dequeue(Key(0, 8, 1), 101).empty());
  CHECK(desk.Dequeue(Key(0, 1, 2), 102) == Told{{101, kAborted}, {102, 1}});
  CHECK(desk.Dequeue(Key(0, 2, 2), 103).empty());
  CHECK(desk.Commit(2) == Told{{103, 2}});
}

TEST_CASE("closed, a desk repeats that all is done") {
  Desk desk(MakePerReplicaTokens(GlobalStep(0)));
  desk.Dequeue(Key(0, 1), 100);
  CHECK(Tell(desk.desk.Close()) == Told{{100, kDone}});
  CHECK(desk.Dequeue(Key(0, 1), 101) == Told{{101, kDone}});
  CHECK(desk.Dequeue(Key(0, 2), 102) == Told{{102, kDone}});
}

TEST_CASE("finished, a desk hands out no token that is left") {
  Desk desk(MakeFifoTokens(GlobalStep(0), 3, 3));
  CHECK(desk.Dequeue(Key(0, 1), 100) == Told{{100, 0}});
  CHECK(Tell(desk.desk.Finish()).empty());
  CHECK(desk.Dequeue(Key(0, 2), 101) == Told{{101, kDone}});
  CHECK(desk.Dequeue(Key(0, 1), 102) == Told{{102, kRefused}});
}

TEST_CASE("finishing answers who waits") {
  Desk desk(MakeFifoTokens(GlobalStep(0), 0, 3));
  desk.Dequeue(Key(0, 1), 100);
  desk.Dequeue(Key(1, 1), 200);
  CHECK(Tell(desk.desk.Finish()) == Told{{100, kDone}, {200, kDone}});
  CHECK(desk.desk.num_waiting() == 0);
}

TEST_CASE("who was told of the end is told nothing more by a commit that comes late") {
  Desk desk(MakePerReplicaTokens(GlobalStep(0)));
  CHECK(desk.Dequeue(Key(0, 1), 100) == Told{});
  CHECK(Tell(desk.desk.Finish()) == Told{{100, kDone}});
  CHECK(desk.Commit(1).empty());
  CHECK(Tell(desk.desk.Close()).empty());
}

TEST_CASE("dropping answers who waits with the reason, once") {
  Desk desk(MakeFifoTokens(GlobalStep(0), 0, 3));
  desk.Dequeue(Key(0, 1), 100);
  CHECK(Tell(desk.desk.Drop(absl::UnavailableError("stop"))) == Told{{100, kUnavailable}});
  CHECK(Tell(desk.desk.Drop(absl::UnavailableError("stop"))).empty());
  CHECK(desk.Commit(1).empty());
}

TEST_CASE("a view of many members is compared with the calls that wait one by one") {
  lockstep::test::CheckGrowth(10'000, [](size_t count) {
    auto desk = std::make_shared<TokenQueue>(MakeFifoTokens(GlobalStep(0), 0, 1));
    std::vector<std::pair<WorkerIndex, Incarnation>> members;
    for (uint32_t i = 0; i < count; ++i) {
      desk->Dequeue({WorkerIndex(i), Incarnation(1), DequeueSeq(1)}, i, {});
      members.emplace_back(WorkerIndex(i), Incarnation(1));
    }
    return [desk, members] {
      CHECK(desk->SetView(members).empty());
      CHECK(desk->SetView({}).size() == members.size());
    };
  });
}

}  // namespace
}  // namespace lockstep::ps
