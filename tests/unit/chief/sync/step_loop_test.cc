#include "chief/sync/step_loop.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <random>

#include "common/base/exit_code.h"
#include "common/base/lost_variables.h"
#include "tests/unit/chief/support/manual_executor.h"
#include "tests/unit/chief/support/scripted_ps.h"

namespace lockstep::chief {
namespace {

constexpr uint32_t kLoss = 9;

GrantReply Closed(int64_t step, float loss = 0, uint64_t accepted = 0, uint64_t stale = 0) {
  GrantReply reply;
  reply.set_step(step);
  reply.set_shard_step(step + 1);
  reply.set_accepted(accepted);
  reply.set_stale(stale);
  reply.add_statistics()->set_variable(3);
  reply.mutable_statistics(0)->add_values(-1);
  reply.add_statistics()->set_variable(kLoss);
  reply.mutable_statistics(1)->add_values(loss);
  return reply;
}

struct Fixture {
  explicit Fixture(size_t num_shards, int64_t start = 0, int64_t end = 10,
                   bool asynchronous = false)
      : shards(num_shards) {
    std::vector<PsControl*> pointers;
    StepLoopOptions options;
    for (ScriptedPs& shard : shards) pointers.push_back(&shard);
    options.command.set_job(5);
    options.command.set_term(6);
    options.start = GlobalStep(start);
    options.end = GlobalStep(end);
    options.asynchronous = asynchronous;
    options.required = 2;
    options.loss_variable = kLoss;
    options.learning_rate = [](GlobalStep step) { return 0.5f * (1 + step.value()); };
    options.keep = [](GlobalStep version) {
      return Keep{.values = version.value() % 2 == 0, .slots = version.value() % 4 == 0};
    };
    options.patience = absl::Seconds(60);
    loop.emplace(
        options, pointers, &executor, &clock,
        [this](const CommittedStep& step) { committed.push_back(step); },
        [this](absl::Status status) { ended = status; });
    loop->Start();
    executor.Run();
  }

  void Answer(size_t shard, absl::StatusOr<GrantReply> reply, size_t i = 0) {
    shards[shard].grants.Answer(std::move(reply), i);
    executor.Run();
  }
  void Commit(absl::StatusOr<CommitStepReply> reply = CommitStepReply()) {
    shards[0].commits.Answer(std::move(reply));
    executor.Run();
  }
  // Of a process that runs: no more than a second passes between two ticks.
  void Pass(absl::Duration time) {
    do {
      const absl::Duration part = std::min(time, absl::Seconds(1));
      clock.Advance(part);
      loop->Tick();
      executor.Run();
      time -= part;
    } while (time > absl::ZeroDuration());
  }
  std::vector<int64_t> Parked(size_t shard) {
    std::vector<int64_t> steps;
    for (size_t i = 0; i < shards[shard].grants.size(); ++i) {
      steps.push_back(shards[shard].grants.at(i).step());
    }
    return steps;
  }

  std::vector<ScriptedPs> shards;
  ManualExecutor executor;
  ManualClock clock;
  std::vector<CommittedStep> committed;
  std::optional<absl::Status> ended;
  std::optional<StepLoop> loop;
};

using Steps = std::vector<int64_t>;

GrantReply At(int64_t step, int64_t shard_step, uint64_t accepted = 0) {
  GrantReply reply;
  reply.set_step(step);
  reply.set_shard_step(shard_step);
  reply.set_accepted(accepted);
  return reply;
}

TEST_CASE("with one shard the grant carries the commit, and two grants are parked") {
  Fixture f(1);
  REQUIRE(f.Parked(0) == Steps{0, 1});
  const GrantRequest& first = f.shards[0].grants.front();
  CHECK(first.command().job() == 5);
  CHECK(first.command().term() == 6);
  CHECK(first.required() == 2);
  CHECK(first.learning_rate() == 0.5f);
  CHECK(first.commit());
  CHECK_FALSE(first.last());
  CHECK(f.shards[0].grants.at(1).learning_rate() == 1.0f);
  f.Answer(0, Closed(0, 2.5f, 30, 4));
  REQUIRE(f.committed.size() == 1);
  CHECK(f.committed[0].global_step == GlobalStep(1));
  CHECK(f.committed[0].loss == 2.5f);
  CHECK(f.Parked(0) == Steps{1, 2});
  CHECK(f.loop->shards()[0].accepted == 30);
  CHECK(f.loop->shards()[0].stale == 4);
  CHECK(f.shards[0].commits.all().empty());
}

TEST_CASE("with several shards a step is committed when all have closed it") {
  Fixture f(3);
  f.Answer(1, Closed(0));
  f.Answer(0, Closed(0, 1.5f));
  CHECK(f.shards[0].commits.size() == 0);
  f.Answer(2, Closed(0, 99.0f));
  REQUIRE(f.shards[0].commits.size() == 1);
  CHECK(f.shards[0].commits.front().step() == 0);
  CHECK_FALSE(f.shards[0].commits.front().last());
  CHECK(f.committed.empty());
  CHECK(f.Parked(0) == Steps{1});
  f.Commit();
  REQUIRE(f.committed.size() == 1);
  CHECK(f.committed[0].loss == 1.5f);
  for (size_t shard = 0; shard < 3; ++shard) {
    CHECK(f.Parked(shard) == Steps{1, 2});
    CHECK_FALSE(f.shards[shard].grants.front().commit());
  }
}

TEST_CASE("a shard that closes the next step before the commit is not asked again") {
  Fixture f(2);
  f.Answer(0, Closed(0));
  f.Answer(1, Closed(0));
  f.Answer(1, Closed(1));
  CHECK(f.Parked(1).empty());
  f.Commit();
  CHECK(f.Parked(0) == Steps{1, 2});
  CHECK(f.Parked(1) == Steps{2});
  f.Answer(0, Closed(1, 4.0f));
  f.Commit();
  CHECK(f.committed.back().global_step == GlobalStep(2));
  CHECK(f.committed.back().loss == 4.0f);
}

TEST_CASE("a grant asks to keep the version that it makes") {
  Fixture f(1, 2);
  CHECK_FALSE(f.shards[0].grants.at(0).keep_values());
  CHECK(f.shards[0].grants.at(1).keep_values());
  CHECK(f.shards[0].grants.at(1).keep_slots());
}

TEST_CASE("the last step says so, and none follows") {
  Fixture one(1, 8);
  CHECK(one.shards[0].grants.at(1).last());
  one.Answer(0, Closed(8));
  CHECK(one.Parked(0) == Steps{9});
  one.Answer(0, Closed(9));
  REQUIRE(one.ended.has_value());
  CHECK(one.ended->ok());
  CHECK(one.committed.size() == 2);

  Fixture two(2, 9);
  CHECK(two.Parked(0) == Steps{9});
  CHECK_FALSE(two.shards[0].grants.front().last());
  two.Answer(0, Closed(9));
  two.Answer(1, Closed(9));
  CHECK(two.shards[0].commits.front().last());
  CHECK_FALSE(two.ended.has_value());
  two.Commit();
  CHECK(two.ended->ok());
}

TEST_CASE("a parked grant that reaches its deadline is issued again at once, unchanged") {
  Fixture f(2);
  const std::string before = f.shards[1].grants.front().SerializeAsString();
  f.Answer(1, absl::DeadlineExceededError("parked for long"));
  REQUIRE(f.shards[1].grants.size() == 2);
  CHECK(f.shards[1].grants.at(1).SerializeAsString() == before);
  CHECK(f.loop->shards()[1].problem.ok());
  f.Answer(1, Closed(0), 1);
  f.Answer(0, Closed(0));
  CHECK(f.shards[0].commits.size() == 1);
}

TEST_CASE("a shard that cannot be reached is asked again after growing pauses") {
  Fixture f(1);
  f.Answer(0, absl::UnavailableError("connection refused"));
  CHECK(f.Parked(0) == Steps{1});
  CHECK_FALSE(f.loop->shards()[0].problem.ok());
  f.Pass(absl::Milliseconds(50));
  CHECK(f.Parked(0) == Steps{1});
  f.Pass(absl::Milliseconds(50));
  CHECK(f.Parked(0) == Steps{1, 0});
  f.Answer(0, absl::UnavailableError("connection refused"), 1);
  f.Pass(absl::Milliseconds(150));
  CHECK(f.Parked(0) == Steps{1});
  f.Pass(absl::Milliseconds(50));
  CHECK(f.Parked(0) == Steps{1, 0});
  f.Answer(0, Closed(0), 1);
  CHECK(f.loop->shards()[0].problem.ok());
  CHECK(f.committed.size() == 1);
}

TEST_CASE("a commit that was lost is repeated") {
  Fixture f(2);
  f.Answer(0, Closed(0));
  f.Answer(1, Closed(0));
  f.Commit(absl::UnavailableError("gone"));
  CHECK(f.committed.empty());
  f.Pass(absl::Milliseconds(100));
  REQUIRE(f.shards[0].commits.size() == 1);
  CHECK(f.shards[0].commits.front().step() == 0);
  f.Commit();
  CHECK(f.committed.size() == 1);
}

TEST_CASE("a shard that stays away ends the loop, with its name") {
  Fixture f(2);
  f.Answer(1, absl::UnavailableError("ps 1 (h:1) is not available"));
  for (int i = 0; i < 59; ++i) {
    f.Pass(absl::Seconds(1));
    CHECK_FALSE(f.ended.has_value());
    const Steps parked = f.Parked(1);
    const auto again = std::find(parked.begin(), parked.end(), 0);
    if (again != parked.end())
      f.Answer(1, absl::UnavailableError("ps 1 (h:1): no"), again - parked.begin());
  }
  f.Pass(absl::Seconds(1));
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
  CHECK(std::string(f.ended->message()).find("ps 1 (h:1)") != std::string::npos);
  f.Answer(0, Closed(0));
  f.Pass(absl::Seconds(5));
  CHECK(f.committed.empty());
}

TEST_CASE("a newer chief ends the loop as fenced, a ps without variables as lost peers") {
  Fixture fenced(2);
  fenced.Answer(1, absl::AbortedError("term 8 is newer"));
  CHECK(ExitCodeFor(*fenced.ended) == ExitCode::kFenced);
  Fixture restarted(2);
  restarted.Answer(1, LostVariablesError("ps 1 (h:1)"));
  CHECK(*restarted.ended == LostVariablesError("ps 1 (h:1)"));
  Fixture of_another_job(2);
  of_another_job.Answer(1, absl::FailedPreconditionError("ps 1 (h:1): the shard serves job 5"));
  CHECK(ExitCodeFor(*of_another_job.ended) == ExitCode::kPeersLost);
  CHECK(std::string(of_another_job.ended->message()).find("--resume") != std::string::npos);
}

TEST_CASE("after Stop nothing more happens") {
  Fixture f(1);
  f.loop->Stop();
  f.Answer(0, Closed(0));
  f.Pass(absl::Hours(1));
  CHECK(f.committed.empty());
  CHECK_FALSE(f.ended.has_value());
}

TEST_CASE("a loss that the shard does not tell is not a number") {
  Fixture f(1);
  f.Answer(0, GrantReply());
  CHECK_FALSE(f.committed[0].loss.has_value());
}

TEST_CASE(
    "in an asynchronous job the step shard alone is granted, far ahead, and nothing committed") {
  Fixture f(2, 0, 100, true);
  REQUIRE(f.Parked(0).size() == 16);
  CHECK(f.Parked(1).empty());
  CHECK_FALSE(f.shards[0].grants.front().commit());
  f.Answer(0, At(0, 3));
  CHECK(f.loop->global_step() == GlobalStep(1));
  CHECK(f.Parked(0).size() == 16);
  CHECK(f.Parked(0).back() == 16);
  CHECK(f.Parked(1).empty());
  CHECK(f.shards[0].commits.all().empty());
  CHECK(f.loop->shards()[0].step == GlobalStep(3));
}

TEST_CASE("what is kept of a version is asked of the other shards when the step shard has it") {
  Fixture f(3, 0, 100, true);
  f.Answer(0, At(0, 1));
  f.Answer(0, At(2, 3), 1);  // an answer that overtook another
  CHECK(f.Parked(1).empty());
  f.Answer(0, At(1, 3));
  CHECK(f.loop->global_step() == GlobalStep(1));
  for (size_t shard : {1, 2}) {
    REQUIRE(f.Parked(shard) == Steps{1});
    CHECK(f.shards[shard].grants.front().keep_values());
    CHECK_FALSE(f.shards[shard].grants.front().last());
  }
  f.Answer(2, At(1, 5));
  f.Answer(1, absl::UnavailableError("ps 1 (h:1): lost"));
  CHECK(f.loop->global_step() == GlobalStep(1));
  f.Pass(absl::Seconds(1));
  f.Answer(1, At(1, 2));
  CHECK(f.loop->global_step() == GlobalStep(3));
}

TEST_CASE("the last version of an asynchronous job stops the other shards") {
  Fixture f(2, 0, 3, true);
  REQUIRE(f.Parked(0) == Steps{0, 1, 2});
  for (int64_t step = 0; step < 3; ++step) f.Answer(0, At(step, step + 1));
  REQUIRE(f.Parked(1) == Steps{1});
  f.Answer(1, At(1, 2));
  REQUIRE(f.Parked(1) == Steps{2});
  CHECK(f.shards[1].grants.front().last());
  CHECK_FALSE(f.ended.has_value());
  f.Answer(1, At(2, 2));
  REQUIRE(f.ended.has_value());
  CHECK(f.ended->ok());
  CHECK(f.committed.size() == 3);
}

TEST_CASE("shards of which nothing is wanted are watched, and a lost one ends the loop") {
  Fixture f(2, 0, 100, true);
  f.Pass(absl::Milliseconds(100));
  REQUIRE(f.Parked(1) == Steps{0});
  CHECK_FALSE(f.shards[1].grants.front().keep_values());
  f.Pass(absl::Milliseconds(100));
  CHECK(f.Parked(1).size() == 1);
  f.Answer(1, At(0, 8, 40));
  CHECK(f.loop->shards()[1].step == GlobalStep(8));
  CHECK(f.loop->shards()[1].accepted == 40);
  f.Pass(absl::Milliseconds(100));
  f.Answer(1, absl::UnavailableError("ps 1 (h:1): lost"));
  f.Pass(absl::Seconds(61));
  REQUIRE(f.ended.has_value());
  CHECK(absl::IsUnavailable(*f.ended));
}

TEST_CASE("whatever is lost on the way, steps are committed in order and once") {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const size_t num_shards = 1 + seed % 3;
    Fixture f(num_shards, 0, 30);
    while (!f.ended.has_value()) {
      const size_t shard = random() % num_shards;
      ScriptedPs& ps = f.shards[shard];
      const int action = random() % 4;
      if (action == 0) f.Pass(absl::Milliseconds(random() % 1000));
      if (action == 1 && ps.commits.size() > 0) {
        f.Commit(random() % 2 ? absl::StatusOr<CommitStepReply>(CommitStepReply())
                              : absl::UnavailableError("lost"));
      }
      if (action >= 2 && ps.grants.size() > 0) {
        // A shard closes steps in order.
        size_t lowest = 0;
        for (size_t i = 1; i < ps.grants.size(); ++i) {
          if (ps.grants.at(i).step() < ps.grants.at(lowest).step()) lowest = i;
        }
        const int64_t step = ps.grants.at(lowest).step();
        if (action == 2) {
          f.Answer(shard, Closed(step, static_cast<float>(step)), lowest);
        } else {
          f.Answer(shard, absl::DeadlineExceededError("lost"), lowest);
        }
      }
    }
    REQUIRE(f.ended->ok());
    REQUIRE(f.committed.size() == 30);
    for (int64_t step = 0; step < 30; ++step) {
      CHECK(f.committed[step].global_step == GlobalStep(step + 1));
      CHECK(f.committed[step].loss == static_cast<float>(step));
    }
  }
}

TEST_CASE("a shard that is back is not given up while its grants are parked again") {
  Fixture f(1);
  f.Answer(0, absl::UnavailableError("connection reset"));
  f.Pass(absl::Seconds(1));
  CHECK(f.Parked(0) == Steps{1, 0});
  REQUIRE(f.shards[0].get_view.size() == 1);
  f.shards[0].get_view.Answer(SetViewReply());
  f.executor.Run();
  CHECK(f.loop->shards()[0].problem.ok());
  for (int i = 0; i < 100; ++i) f.Pass(absl::Seconds(1));
  CHECK_FALSE(f.ended.has_value());
}

}  // namespace
}  // namespace lockstep::chief
