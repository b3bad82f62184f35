#include "ps/tokens/token_policy.h"

#include <catch2/catch.hpp>

namespace lockstep::ps {
namespace {

constexpr GlobalStep kStart(10);
const WorkerIndex kFirst(0);
const WorkerIndex kSecond(1);
const WorkerIndex kThird(2);

GrantedToken Gets(WorkerIndex worker, int64_t step) { return {worker, GlobalStep(step), false}; }
GrantedToken IsDone(WorkerIndex worker) { return {worker, GlobalStep(), true}; }

TEST_CASE("PER_REPLICA hands out nothing before the first commit") {
  const auto tokens = MakePerReplicaTokens(kStart);
  CHECK(tokens->Request(kFirst, std::nullopt).empty());
  CHECK(tokens->Request(kSecond, kStart).empty());
  CHECK(tokens->Commit(GlobalStep(11)) == GrantedTokens{Gets(kFirst, 11), Gets(kSecond, 11)});
}

TEST_CASE("PER_REPLICA gives each replica one token per step, of the newest step") {
  const auto tokens = MakePerReplicaTokens(kStart);
  tokens->Commit(GlobalStep(11));
  CHECK(tokens->Request(kFirst, std::nullopt) == GrantedTokens{Gets(kFirst, 11)});
  CHECK(tokens->Request(kFirst, std::nullopt).empty());
  // The third replica never spent the token of step 11: it becomes the one of 12, then of 13.
  CHECK(tokens->Commit(GlobalStep(12)) == GrantedTokens{Gets(kFirst, 12)});
  CHECK(tokens->Commit(GlobalStep(13)).empty());
  CHECK(tokens->Request(kThird, GlobalStep(10)) == GrantedTokens{Gets(kThird, 13)});
  CHECK(tokens->Request(kThird, GlobalStep(13)).empty());
}

TEST_CASE("PER_REPLICA hands out no token for a step into which the replica has pushed") {
  const auto tokens = MakePerReplicaTokens(kStart);
  tokens->Commit(GlobalStep(11));
  CHECK(tokens->Request(kFirst, GlobalStep(11)).empty());
  CHECK(tokens->Commit(GlobalStep(12)) == GrantedTokens{Gets(kFirst, 12)});
}

TEST_CASE("PER_REPLICA hands a token out again to who says that it does not have it") {
  const auto tokens = MakePerReplicaTokens(kStart);
  tokens->SetToken(kFirst, GlobalStep(3));  // of an epoch before: the same as the start
  CHECK(tokens->Request(kFirst, std::nullopt).empty());
  tokens->Commit(GlobalStep(11));
  tokens->Commit(GlobalStep(12));
  CHECK(tokens->Request(kFirst, std::nullopt) == GrantedTokens{Gets(kFirst, 12)});
  tokens->SetToken(kFirst, GlobalStep(11));
  CHECK(tokens->Request(kFirst, std::nullopt) == GrantedTokens{Gets(kFirst, 12)});
  tokens->SetToken(kFirst, GlobalStep(12));
  CHECK(tokens->Request(kFirst, std::nullopt).empty());
}

TEST_CASE("PER_REPLICA keeps a dead replica's token for its successor") {
  const auto tokens = MakePerReplicaTokens(kStart);
  tokens->Commit(GlobalStep(11));
  CHECK(tokens->Request(kFirst, std::nullopt) == GrantedTokens{Gets(kFirst, 11)});
  // Its successor was told to start at step 10, which has been committed meanwhile.
  tokens->Succeed(kFirst);
  CHECK(tokens->Request(kFirst, GlobalStep(10)) == GrantedTokens{Gets(kFirst, 11)});
  // And one that started at step 11 and pushed into it gets no second token for it.
  tokens->Succeed(kFirst);
  CHECK(tokens->Request(kFirst, GlobalStep(11)).empty());
}

TEST_CASE("PER_REPLICA does not serve who has withdrawn") {
  const auto tokens = MakePerReplicaTokens(kStart);
  CHECK(tokens->Request(kFirst, std::nullopt).empty());
  tokens->Withdraw(kFirst);
  CHECK(tokens->Commit(GlobalStep(11)).empty());
  CHECK(tokens->Request(kFirst, std::nullopt) == GrantedTokens{Gets(kFirst, 11)});
}

TEST_CASE("PER_REPLICA, closed, tells everybody that all is done") {
  const auto tokens = MakePerReplicaTokens(kStart);
  tokens->Request(kSecond, std::nullopt);
  CHECK(tokens->Close() == GrantedTokens{IsDone(kSecond)});
  CHECK(tokens->Request(kFirst, std::nullopt) == GrantedTokens{IsDone(kFirst)});
  CHECK(tokens->Close().empty());
}

TEST_CASE("FIFO hands out the initial tokens, then waits") {
  const auto tokens = MakeFifoTokens(kStart, 2, 3);
  CHECK(tokens->Request(kFirst, std::nullopt) == GrantedTokens{Gets(kFirst, 10)});
  CHECK(tokens->Request(kFirst, std::nullopt) == GrantedTokens{Gets(kFirst, 10)});
  CHECK(tokens->Request(kSecond, std::nullopt).empty());
  CHECK(tokens->Request(kFirst, std::nullopt).empty());
  CHECK(tokens->Commit(GlobalStep(11)) == GrantedTokens{Gets(kSecond, 11), Gets(kFirst, 11)});
  CHECK(tokens->Request(kThird, std::nullopt) == GrantedTokens{Gets(kThird, 11)});
}

TEST_CASE("FIFO leaves old tokens in front of new ones") {
  const auto tokens = MakeFifoTokens(kStart, 1, 2);
  tokens->Commit(GlobalStep(11));
  tokens->Commit(GlobalStep(12));
  for (const int64_t step : {10, 11, 11, 12, 12}) {
    CHECK(tokens->Request(kFirst, std::nullopt) == GrantedTokens{Gets(kFirst, step)});
  }
}

TEST_CASE("FIFO does not give a token to who has withdrawn, nor loses it") {
  const auto tokens = MakeFifoTokens(kStart, 0, 1);
  tokens->Request(kFirst, std::nullopt);
  tokens->Request(kSecond, std::nullopt);
  tokens->Withdraw(kFirst);
  CHECK(tokens->Commit(GlobalStep(11)) == GrantedTokens{Gets(kSecond, 11)});
  CHECK(tokens->Request(kFirst, std::nullopt).empty());
  tokens->Succeed(kFirst);
  CHECK(tokens->Commit(GlobalStep(12)).empty());
  CHECK(tokens->Request(kThird, std::nullopt) == GrantedTokens{Gets(kThird, 12)});
}

TEST_CASE("FIFO, closed, drains what is left and takes nothing in") {
  const auto tokens = MakeFifoTokens(kStart, 2, 2);
  CHECK(tokens->Close().empty());
  CHECK(tokens->Commit(GlobalStep(11)).empty());
  CHECK(tokens->Request(kFirst, std::nullopt) == GrantedTokens{Gets(kFirst, 10)});
  CHECK(tokens->Request(kSecond, std::nullopt) == GrantedTokens{Gets(kSecond, 10)});
  CHECK(tokens->Request(kFirst, std::nullopt) == GrantedTokens{IsDone(kFirst)});
}

TEST_CASE("FIFO, closed, ends the waits of those who are blocked") {
  const auto tokens = MakeFifoTokens(kStart, 0, 2);
  tokens->Request(kSecond, std::nullopt);
  tokens->Request(kFirst, std::nullopt);
  CHECK(tokens->Close() == GrantedTokens{IsDone(kSecond), IsDone(kFirst)});
}

TEST_CASE("TensorFlow's numbers of tokens") {
  struct Row {
    int64_t total, aggregate, init, initial, per_step;
  };
  const Row rows[] = {
      {2, 2, -1, 2, 2}, {3, 2, -1, 2, 3}, {1, 2, -1, 2, 2}, {1, 2, 1, 1, 2},
      {3, 2, 0, 0, 3},  {2, 2, 0, 0, 2},  {3, 2, 7, 7, 3},  {4, 2, -2, 0, 4},
  };
  for (const Row& row : rows) {
    CAPTURE(row.total, row.aggregate, row.init);
    const auto counts = CountFifoTokens(row.total, row.aggregate, row.init);
    REQUIRE(counts.ok());
    CHECK(counts->initial == row.initial);
    CHECK(counts->per_step == row.per_step);
  }
  for (const Row& row : {Row{1, 2, 0, 0, 0}, Row{1, 4, 2, 0, 0}, Row{2, 2, -2, 0, 0}}) {
    CAPTURE(row.total, row.aggregate, row.init);
    CHECK(CountFifoTokens(row.total, row.aggregate, row.init).status().code() ==
          absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("a closed queue that is reopened makes the tokens that its last commit did not") {
  const auto fifo = MakeFifoTokens(kStart, 1, 2);
  fifo->Commit(GlobalStep(11));
  CHECK(fifo->Request(kFirst, std::nullopt) == GrantedTokens{Gets(kFirst, 10)});
  fifo->Close();
  CHECK(fifo->Commit(GlobalStep(12)).empty());
  CHECK(fifo->Reopen(GlobalStep(12)).empty());
  for (const int64_t step : {11, 11, 12, 12}) {
    CHECK(fifo->Request(kSecond, std::nullopt) == GrantedTokens{Gets(kSecond, step)});
  }
  CHECK(fifo->Request(kSecond, std::nullopt).empty());
  CHECK(fifo->Reopen(GlobalStep(12)).empty());  // open already: no tokens from nothing
  CHECK(fifo->Commit(GlobalStep(13)) == GrantedTokens{Gets(kSecond, 13)});

  const auto replicas = MakePerReplicaTokens(kStart);
  replicas->Commit(GlobalStep(11));
  CHECK(replicas->Request(kFirst, std::nullopt) == GrantedTokens{Gets(kFirst, 11)});
  replicas->Close();
  CHECK(replicas->Request(kFirst, std::nullopt) == GrantedTokens{IsDone(kFirst)});
  CHECK(replicas->Reopen(GlobalStep(12)).empty());
  CHECK(replicas->Request(kFirst, GlobalStep(11)) == GrantedTokens{Gets(kFirst, 12)});
  CHECK(replicas->Request(kFirst, GlobalStep(11)).empty());
}

TEST_CASE("a closed queue drains in its order before it says that all is done") {
  const auto tokens = MakeFifoTokens(kStart, 3, 2);
  CHECK(tokens->Close().empty());
  for (int i = 0; i < 3; ++i) {
    CHECK(tokens->Request(kSecond, std::nullopt) == GrantedTokens{Gets(kSecond, 10)});
  }
  CHECK(tokens->Request(kSecond, std::nullopt) == GrantedTokens{IsDone(kSecond)});
  CHECK(tokens->Request(kFirst, std::nullopt) == GrantedTokens{IsDone(kFirst)});
}

TEST_CASE("initial tokens are TensorFlow's for every number that can be asked for") {
  for (int64_t total = 1; total <= 5; ++total) {
    for (int64_t aggregate = 1; aggregate <= 5; ++aggregate) {
      for (int64_t asked = -4; asked <= 6; ++asked) {
        const auto counts = CountFifoTokens(total, aggregate, asked);
        // get_init_tokens_op of sync_replicas_optimizer.py.
        const int64_t given = asked == -1 ? aggregate : asked;
        const bool too_few = asked != -1 && given < aggregate - total;
        INFO(total << " " << aggregate << " " << asked);
        REQUIRE(counts.ok() != too_few);
        if (too_few) {
          CHECK(absl::IsInvalidArgument(counts.status()));
          CHECK(counts.status().message().find("too few tokens to finish the first step") == 0);
          continue;
        }
        CHECK(counts->initial == (given > 0 ? given : 0));
        CHECK(counts->per_step == (total > aggregate ? total : aggregate));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::ps
