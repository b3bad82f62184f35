#include "chief/sync/snapshots.h"

#include <catch2/catch.hpp>

#include "tests/unit/chief/support/manual_executor.h"
#include "tests/unit/chief/support/scripted_ps.h"

namespace lockstep::chief {
namespace {

struct Fixture {
  void Pass(absl::Duration time) {
    clock.Advance(time);
    snapshots.Tick();
    executor.Run();
  }

  ScriptedPs ps[2];
  ManualExecutor executor;
  ManualClock clock;
  Snapshots snapshots{Command(), {&ps[0], &ps[1]}, &executor, &clock};
};

TEST_CASE("a version is released at every shard when its last user is through with it") {
  Fixture f;
  f.snapshots.Hold(GlobalStep(3), 2);
  f.snapshots.Release(GlobalStep(3));
  CHECK(f.ps[0].releases.all().empty());
  f.snapshots.Release(GlobalStep(3));
  f.snapshots.Hold(GlobalStep(4), 0);
  for (ScriptedPs& ps : f.ps) {
    REQUIRE(ps.releases.size() == 2);
    CHECK(ps.releases.at(0).version() == 3);
    CHECK(ps.releases.at(1).version() == 4);
    for (int release = 0; release < 2; ++release) ps.releases.Answer(ReleaseSnapshotReply());
    f.executor.Run();
  }
}

TEST_CASE("the others keep a version until the step shard has what its evaluation found") {
  Fixture f;
  EvaluatedVersion found;
  found.set_version(3);
  f.snapshots.Hold(GlobalStep(3), 1);
  f.snapshots.NoteEvaluation(found);
  f.snapshots.Release(GlobalStep(3));
  f.ps[0].releases.Answer(absl::UnavailableError("ps 0 is not available"));
  f.executor.Run();
  f.Pass(absl::Seconds(3));
  CHECK(f.ps[1].releases.all().empty());
  REQUIRE(f.ps[0].releases.size() == 1);
  CHECK(f.ps[0].releases.front().has_evaluation());
  f.ps[0].releases.Answer(ReleaseSnapshotReply());
  f.executor.Run();
  REQUIRE(f.ps[1].releases.size() == 1);
  CHECK(f.ps[1].releases.front().version() == 3);
}

TEST_CASE("a release that a shard has not answered is repeated until it has") {
  Fixture f;
  f.snapshots.Hold(GlobalStep(3), 0);
  f.ps[0].releases.Answer(ReleaseSnapshotReply());
  f.executor.Run();
  for (int failures = 0; failures < 5; ++failures) {
    REQUIRE(f.ps[1].releases.size() == 1);
    f.ps[1].releases.Answer(absl::UnavailableError("ps 1 is not available"));
    f.executor.Run();
    f.Pass(absl::Seconds(3));
  }
  REQUIRE(f.ps[1].releases.size() == 1);
  CHECK(f.ps[1].releases.front().version() == 3);
  f.ps[1].releases.Answer(ReleaseSnapshotReply());
  f.executor.Run();
  f.Pass(absl::Seconds(3));
  CHECK(f.ps[0].releases.all().size() == 1);
  CHECK(f.ps[1].releases.all().size() == 6);
}

TEST_CASE("what an evaluation found goes to the step shard with the version's release") {
  Fixture f;
  EvaluatedVersion found;
  found.set_version(3);
  found.set_loss(0.25);
  f.snapshots.Hold(GlobalStep(3), 2);
  f.snapshots.NoteEvaluation(found);
  f.snapshots.Release(GlobalStep(3));
  f.snapshots.Release(GlobalStep(3));
  f.snapshots.Hold(GlobalStep(4), 0);
  for (int failures = 0; failures < 2; ++failures) {
    REQUIRE(f.ps[0].releases.size() > 0);
    CHECK(f.ps[0].releases.front().evaluation().loss() == 0.25);
    f.ps[0].releases.Answer(absl::UnavailableError("ps 0 is not available"));
    f.executor.Run();
    if (failures == 0) f.ps[0].releases.Answer(ReleaseSnapshotReply());
    f.Pass(absl::Seconds(3));
  }
  for (const ReleaseSnapshotRequest& release : f.ps[0].releases.all()) {
    CHECK(release.has_evaluation() == (release.version() == 3));
  }
  for (const ReleaseSnapshotRequest& release : f.ps[1].releases.all()) {
    CHECK_FALSE(release.has_evaluation());
  }
}

TEST_CASE("a release that another chief forbids is not repeated") {
  Fixture f;
  f.snapshots.Hold(GlobalStep(3), 0);
  f.ps[0].releases.Answer(absl::AbortedError("the shard is in term 2"));
  f.executor.Run();
  f.Pass(absl::Seconds(3));
  CHECK(f.ps[0].releases.all().size() == 1);
}

}  // namespace
}  // namespace lockstep::chief
