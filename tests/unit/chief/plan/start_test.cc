// Where a job starts.
#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "chief/plan/messages.h"
#include "chief/plan/plan.h"
#include "common/base/exit_code.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/owner.h"
#include "tests/unit/chief/plan/plan_fixture.h"

namespace lockstep::chief {
namespace {

// The checkpoint by which a standby of this folder knows that the job is done.
std::string Finished(Fixture& f) { return f.Make({.mode = StartMode::kSucceed})->finished; }

TEST_CASE("a standby takes no abandoned checkpoint for the end of the job") {
  Fixture f;
  const std::string root = f.folder.Path("ckpt");
  REQUIRE_FALSE(std::filesystem::exists(root));
  CHECK(Finished(f).empty());
  const absl::StatusOr<JobPlan> fresh = f.Make();
  REQUIRE(fresh.ok());
  WriteCheckpoint(*fresh, root, 4, Epoch(3));
  CHECK(Finished(f).empty());
  WriteCheckpoint(*fresh, root, 10, Epoch(3));
  CHECK(Finished(f) == root + "/ckpt-10");
  // From that one, from an older one, from another folder, from the initial values.
  const auto begin = [&root](const CheckpointOrigin& origin, const std::string& source = "") {
    REQUIRE(WriteOwner(root, {.epoch = 5, .origin = origin, .source = source}, nullptr).ok());
  };
  begin({.epoch = 3, .step = 10});
  CHECK(Finished(f) == root + "/ckpt-10");
  begin({.epoch = 3, .step = 4});
  CHECK(Finished(f).empty());
  begin({.step = 5}, f.folder.Path("elsewhere/ckpt-5"));
  CHECK(Finished(f).empty());
  begin({});
  CHECK(Finished(f).empty());
  WriteCheckpoint(*fresh, root, 12, Epoch(5));
  CHECK(Finished(f) == root + "/ckpt-12");
}

TEST_CASE("a restored job starts at the checkpoint's step in the next epoch") {
  Fixture f;
  const absl::StatusOr<JobPlan> fresh = f.Make();
  REQUIRE(fresh.ok());
  WriteCheckpoint(*fresh, f.folder.Path("ckpt"), 4);
  WriteCheckpoint(*fresh, f.folder.Path("ckpt"), 6);
  const absl::StatusOr<JobPlan> newest = f.Make({.mode = StartMode::kRestore});
  REQUIRE(newest.ok());
  CHECK(newest->start == GlobalStep(6));
  CHECK(newest->epoch == Epoch(4));
  CHECK(ToCreateVariables(*newest).restore_from() == newest->restore_from);
  CHECK(ToCreateVariables(*newest).start_step() == 6);
  const absl::StatusOr<JobPlan> older =
      f.Make({.mode = StartMode::kRestore, .folder = f.folder.Path("ckpt/ckpt-4")});
  REQUIRE(older.ok());
  CHECK(older->start == GlobalStep(4));
}

TEST_CASE("a job takes an epoch above all that its folder has had, and names its origin") {
  Fixture f;
  const std::string root = f.folder.Path("ckpt");
  const auto make = [&f](StartMode mode, const std::string& folder = "") {
    const absl::StatusOr<JobPlan> plan = f.Make({.mode = mode, .folder = folder});
    REQUIRE(plan.ok());
    return *plan;
  };
  const JobPlan first = make(StartMode::kResume);
  CHECK(first.origin == CheckpointOrigin());
  WriteCheckpoint(first, root, 4, Epoch(3));
  WriteCheckpoint(first, root, 6, Epoch(5));
  const JobPlan back = make(StartMode::kRestore, root + "/ckpt-4");
  CHECK(back.epoch == Epoch(6));
  CHECK(back.origin == CheckpointOrigin{.epoch = 3, .step = 4});
  CHECK(make(StartMode::kResume).origin == CheckpointOrigin{.epoch = 5, .step = 6});
  // A run that has had the folder and saved nothing counts, also for one that begins anew.
  REQUIRE(WriteOwner(root, {.epoch = 8, .origin = back.origin}, nullptr).ok());
  CHECK(make(StartMode::kResume).epoch == Epoch(9));
  CHECK(make(StartMode::kResume).restore_from == root + "/ckpt-4");
  CHECK(make(StartMode::kFresh).epoch == Epoch(9));
  CHECK(make(StartMode::kFresh).origin == CheckpointOrigin());
  // Another folder's epochs are not this one's.
  const std::string elsewhere = f.folder.Path("elsewhere");
  WriteCheckpoint(first, elsewhere, 5, Epoch(11));
  const JobPlan from_elsewhere = make(StartMode::kRestore, elsewhere);
  CHECK(from_elsewhere.epoch == Epoch(12));
  CHECK(from_elsewhere.origin == CheckpointOrigin{.epoch = 0, .step = 5});
}

TEST_CASE("a job that began from another folder goes back there until it has saved") {
  Fixture f;
  const std::string root = f.folder.Path("ckpt");
  const std::string elsewhere = f.folder.Path("elsewhere");
  const absl::StatusOr<JobPlan> fresh = f.Make();
  REQUIRE(fresh.ok());
  WriteCheckpoint(*fresh, elsewhere, 5, Epoch(11));
  const bool has_earlier = GENERATE(false, true);  // an unrelated run's
  CAPTURE(has_earlier);
  if (has_earlier) WriteCheckpoint(*fresh, root, 8, Epoch(3));
  JobPlan plan = *f.Make({.mode = StartMode::kRestore, .folder = elsewhere});
  const auto take = [&root](const JobPlan& taken) {
    const FolderOwner owner{
        .epoch = taken.epoch.value(), .origin = taken.origin, .source = taken.source()};
    REQUIRE(WriteOwner(root, owner, nullptr).ok());
  };
  for (int times = 0; times < 2; ++times) {
    take(plan);
    const Epoch before = plan.epoch;
    plan = *GoBack(plan, "ps 1 is gone");
    CHECK(plan.restore_from == elsewhere + "/ckpt-5");
    CHECK(plan.start == GlobalStep(5));
    CHECK(plan.epoch > before);
  }
  CHECK(f.Make({.mode = StartMode::kResume})->restore_from == elsewhere + "/ckpt-5");
  take(plan);
  WriteCheckpoint(*fresh, root, 7, plan.epoch);
  CHECK(GoBack(plan, "ps 1 is gone")->restore_from == root + "/ckpt-7");
  // What it began from is gone, and it has saved nothing: the initial values are not the same.
  plan = *f.Make({.mode = StartMode::kRestore, .folder = elsewhere});
  take(plan);
  std::filesystem::remove_all(elsewhere);
  CHECK(absl::IsNotFound(GoBack(plan, "ps 1 is gone").status()));
}

TEST_CASE("a job whose folder could not be told where it began goes back there all the same") {
  Fixture f;
  const std::string root = f.folder.Path("ckpt");
  const std::string elsewhere = f.folder.Path("elsewhere");
  const absl::StatusOr<JobPlan> fresh = f.Make();
  REQUIRE(fresh.ok());
  WriteCheckpoint(*fresh, elsewhere, 5, Epoch(11));
  for (const int64_t step : {4, 6}) WriteCheckpoint(*fresh, root, step, Epoch(3));
  const std::string began_at = GENERATE(true, false) ? elsewhere + "/ckpt-5" : root + "/ckpt-4";
  CAPTURE(began_at);
  JobPlan plan = *f.Make({.mode = StartMode::kRestore, .folder = began_at});
  for (int times = 0; times < 2; ++times) {
    const FolderOwner owed{
        .epoch = plan.epoch.value(), .origin = plan.origin, .source = plan.source()};
    const Epoch before = plan.epoch;
    plan = *GoBack(plan, "ps 1 is gone", owed);
    CHECK(plan.restore_from == began_at);
    CHECK(plan.epoch > before);
    CHECK(plan.mode == StartMode::kResume);
  }
  // Written later, and the folder says more.
  const FolderOwner late{
      .epoch = plan.epoch.value(), .origin = plan.origin, .source = plan.source()};
  REQUIRE(WriteOwner(root, late, nullptr).ok());
  WriteCheckpoint(*fresh, root, 7, plan.epoch);
  CHECK(GoBack(plan, "ps 1 is gone", late)->restore_from == root + "/ckpt-7");
}

// The chief has died before it has set the earlier run's checkpoints aside.
TEST_CASE("a job that began anew goes back to the initial values, and to no earlier run") {
  Fixture f;
  const std::string root = f.folder.Path("ckpt");
  const absl::StatusOr<JobPlan> fresh = f.Make();
  REQUIRE(fresh.ok());
  for (const int64_t step : {4, 10}) WriteCheckpoint(*fresh, root, step, Epoch(3));
  JobPlan plan = *f.Make({.mode = StartMode::kFresh});
  const bool is_owed = GENERATE(false, true);
  CAPTURE(is_owed);
  for (int times = 0; times < 2; ++times) {
    const FolderOwner owner{.epoch = plan.epoch.value(), .is_fresh = true};
    if (!is_owed) REQUIRE(WriteOwner(root, owner, nullptr).ok());
    const Epoch before = plan.epoch;
    plan = *GoBack(plan, "ps 1 is gone", is_owed ? std::optional(owner) : std::nullopt);
    CHECK(plan.start == GlobalStep(0));
    CHECK(plan.restore_from.empty());
    CHECK(plan.earlier == root + "/ckpt-10");
    CHECK(plan.mode == StartMode::kResume);
    CHECK(plan.epoch > before);
  }
  // The user's own wish.
  CHECK(f.Make({.mode = StartMode::kResume})->restore_from == root + "/ckpt-10");
  if (is_owed) return;
  SECTION("unless it has saved") {
    WriteCheckpoint(*fresh, root, 2, plan.epoch);
    CHECK(GoBack(plan, "ps 1 is gone")->restore_from == root + "/ckpt-2");
  }
  f.folder.Write("ckpt/ckpt-10/manifest.json", "{}");
  SECTION("also where one of the earlier run cannot be read") {
    const JobPlan back = *GoBack(plan, "ps 1 is gone");
    CHECK(back.start == GlobalStep(0));
    CHECK(back.restore_from.empty());
    CHECK_FALSE(back.earlier.empty());
  }
  SECTION("unless it has saved, and another one cannot be read") {
    WriteCheckpoint(*fresh, root, 2, plan.epoch);
    CHECK(GoBack(plan, "ps 1 is gone")->restore_from == root + "/ckpt-2");
    CHECK(GoBack(plan, "ps 1 is gone")->earlier.empty());
  }
  SECTION("unless what cannot be read may be its own") {
    f.folder.Write("ckpt/ckpt-4/manifest.json", "{}");
    CHECK(ExitCodeFor(GoBack(plan, "ps 1 is gone").status()) == ExitCode::kCorruptInput);
    WriteCheckpoint(*fresh, root, 3, plan.epoch);
    CHECK(GoBack(plan, "ps 1 is gone")->restore_from == root + "/ckpt-3");
    CHECK(GoBack(plan, "ps 1 is gone")->earlier.empty());
  }
}

TEST_CASE("a job restores a checkpoint of other parts than its own") {
  Fixture f;
  const std::string in_parts = absl::StrCat(kJob, "max_part_bytes: 12");
  f.Write(in_parts);
  const absl::StatusOr<JobPlan> split = f.Make();
  REQUIRE(split.ok());
  REQUIRE(split->placement.variables_size() == 4);
  CHECK(split->placement.variables(1).name() == "fc/kernel#1");
  CHECK(split->loss_variable == 3);
  CHECK(split->balance.max_bytes == 24);
  WriteCheckpoint(*split, f.folder.Path("ckpt"), 4);
  CHECK(f.Make({.mode = StartMode::kRestore}).ok());
  f.Write(kJob);
  CHECK(f.Make({.mode = StartMode::kRestore}).ok());
  f.Write(absl::StrCat(kJob, "max_part_bytes: 1"));
  CHECK(f.Make({.mode = StartMode::kRestore}).ok());
  // A model with other rows is still another model.
  f.folder.Write("model.textproto", absl::StrReplaceAll(kModel, {{"units: 3", "units: 4"}}));
  CHECK(Mentions(f.Make({.mode = StartMode::kRestore}).status(),
                 "variable fc/kernel is float32[2,4] in the model and float32[2,3] in the "
                 "checkpoint"));
}

TEST_CASE("a restore that cannot be is refused with its reason") {
  Fixture f;
  CHECK(ExitCodeFor(f.Make({.mode = StartMode::kRestore}).status()) == ExitCode::kInputNotFound);
  CHECK(Mentions(f.Fail("checkpoint { folder: \"ckpt\" }", "", {.mode = StartMode::kRestore}),
                 "--restore="));
  f.Write(kJob);
  WriteCheckpoint(*f.Make(), f.folder.Path("ckpt"), 10);
  CHECK(Mentions(f.Make({.mode = StartMode::kRestore}).status(), "Remedy: raise max_steps"));
  CHECK(Mentions(f.Fail("momentum { momentum: 0.9 }", "sgd {}", {.mode = StartMode::kRestore}),
                 "optimizer"));
}

TEST_CASE("a job resumes at the newest checkpoint, or begins, or is done") {
  Fixture f;
  const StartChoice resume{.mode = StartMode::kResume};
  const absl::StatusOr<JobPlan> first = f.Make(resume);
  REQUIRE(first.ok());
  CHECK(first->restore_from.empty());
  CHECK(first->start == GlobalStep(0));
  CHECK(first->epoch == Epoch(1));
  WriteCheckpoint(*first, f.folder.Path("ckpt"), 4);
  WriteCheckpoint(*first, f.folder.Path("ckpt"), 6);
  const absl::StatusOr<JobPlan> second = f.Make(resume);
  REQUIRE(second.ok());
  CHECK(second->restore_from == f.folder.Path("ckpt/ckpt-6"));
  CHECK(second->start == GlobalStep(6));
  CHECK_FALSE(second->is_done());
  for (const int64_t last : {10, 12}) {
    WriteCheckpoint(*first, f.folder.Path("ckpt"), last);
    const absl::StatusOr<JobPlan> done = f.Make(resume);
    REQUIRE(done.ok());
    CHECK(done->is_done());
  }
  CHECK(f.Fail("checkpoint { folder: \"ckpt\" }", "", resume).ok());
}

TEST_CASE("a job that resumes after it has diverged knows the checkpoint to go back to") {
  Fixture f;
  const std::string root = f.folder.Path("ckpt");
  const absl::StatusOr<JobPlan> first = f.Make();
  REQUIRE(first.ok());
  WriteCheckpoint(*first, root, 4);
  CHECK(f.Make({.mode = StartMode::kResume})->diverged.empty());
  WriteCheckpoint(*first, root, 6, Epoch(3), /*is_finite=*/false);
  const JobPlan resumed = *f.Make({.mode = StartMode::kResume});
  CHECK(resumed.restore_from == root + "/ckpt-6");
  CHECK_THAT(resumed.diverged,
             Catch::StartsWith(root + "/ckpt-6 has values that are infinite or NaN; ") &&
                 Catch::EndsWith("--restore=" + root + "/ckpt-4"));
  CHECK(GoBack(resumed, "ps 1 is gone")->diverged == resumed.diverged);
  const JobPlan restored = *f.Make({.mode = StartMode::kRestore, .folder = root + "/ckpt-4"});
  CHECK(restored.diverged.empty());
  REQUIRE(WriteOwner(root, {.epoch = 4, .origin = restored.origin}, nullptr).ok());
  CHECK(GoBack(resumed, "ps 1 is gone")->diverged.empty());
}

TEST_CASE("a job whose checkpoints are all broken does not begin anew by itself") {
  Fixture f;
  WriteCheckpoint(*f.Make(), f.folder.Path("ckpt"), 4);
  f.folder.Write("ckpt/ckpt-4/manifest.json", "{}");
  const absl::Status status = f.Make({.mode = StartMode::kResume}).status();
  CHECK(ExitCodeFor(status) == ExitCode::kCorruptInput);
}

TEST_CASE("a beginning knows of a checkpoint that it would bury") {
  Fixture f;
  CHECK(f.Make()->earlier.empty());
  WriteCheckpoint(*f.Make(), f.folder.Path("ckpt"), 4);
  for (const StartMode mode : {StartMode::kBegin, StartMode::kFresh}) {
    CHECK(f.Make({.mode = mode})->earlier == f.folder.Path("ckpt/ckpt-4"));
    CHECK(f.Make({.mode = mode})->start == GlobalStep(0));
  }
  CHECK(f.Make({.mode = StartMode::kResume})->earlier.empty());
}

}  // namespace
}  // namespace lockstep::chief
