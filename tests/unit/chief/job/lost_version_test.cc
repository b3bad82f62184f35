// What becomes of an evaluation whose version went with a shard that its copy has replaced.
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

// A job of four steps that evaluates every second version, and whose only shard has a copy.
struct CopiedJob {
  explicit CopiedJob(bool use_averages = false) : f(Plan(use_averages), Options()) {
    f.view = WithVariables(0);
    f.Register(0, 10);
    f.Beat(0, 10);
    f.Step();
    Keep(2);
    f.Step();
  }
  static JobPlan Plan(bool use_averages) {
    JobPlan plan = TwoWorkerPlan(4);
    plan.examples.test = 100;
    plan.job.mutable_evaluation()->set_every_steps(2);
    plan.job.mutable_evaluation()->set_use_averages(use_averages);
    return plan;
  }
  JobOptions Options() {
    JobOptions options;
    options.shard_places = [this] {
      ShardPlace place;
      place.set_address(*address);
      return std::vector<ShardPlace>{place};
    };
    return options;
  }
  // The answer to GetView from now on; 0: no version is kept.
  void Keep(int64_t version) {
    f.view = WithVariables(f.closed_steps);
    if (version != 0) f.view.add_kept_versions(version);
  }
  // The copy serves, which has kept nothing.
  void Promote() {
    *address = "127.0.0.1:9";
    Keep(0);
  }
  int64_t running() {
    const auto beat = f.Beat(0, 10);
    return beat->has_value() && (**beat)->leases_size() == 1 ? (**beat)->leases(0).version() : 0;
  }

  const std::shared_ptr<std::string> address = std::make_shared<std::string>("127.0.0.1:1");
  JobFixture f;
};

TEST_CASE("an evaluation goes on while its shards keep the version") {
  CopiedJob job;
  job.f.Pass(absl::Seconds(1));
  *job.address = "127.0.0.1:9";
  job.f.Pass(absl::Seconds(1));
  CHECK(job.f.ps.releases.all().empty());
  CHECK(job.f.job->record().warnings.newest().empty());
}

TEST_CASE("an evaluation whose version a promoted copy has not kept is given up with a warning") {
  CopiedJob job;
  job.f.Pass(absl::Seconds(1));
  job.Promote();
  job.f.Pass(absl::Seconds(1));
  REQUIRE(job.f.ps.releases.all().size() == 1);
  CHECK(job.f.ps.releases.all()[0].version() == 2);
  const auto& warnings = job.f.job->record().warnings.newest();
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0].text, Contains("no evaluation at step 2: the version was lost with ps 0"));
  // The next one is not left out.
  job.f.Step();
  job.f.Step();
  job.Keep(4);
  CHECK(job.running() == 4);
}

TEST_CASE("a shard that does not say what it keeps is asked again") {
  CopiedJob job;
  job.f.ps_answers = false;
  job.f.Pass(absl::Milliseconds(200));
  REQUIRE(job.f.ps.get_view.size() == 1);
  job.Promote();
  job.f.ps.get_view.Answer(absl::UnavailableError("its copy takes its place"));
  job.f.ps_answers = true;
  job.f.Pass(absl::Seconds(1));
  CHECK(job.f.ps.releases.all().size() == 1);
}

TEST_CASE("the last version is evaluated at a promoted copy, unless its averages are wanted") {
  const bool use_averages = GENERATE(false, true);
  CopiedJob job(use_averages);
  job.f.Pass(absl::Seconds(1));
  job.Promote();
  job.f.Pass(absl::Seconds(1));
  job.f.Step();
  job.f.Step();
  job.Keep(0);
  CHECK(job.running() == 4);
  job.f.Pass(absl::Seconds(1));
  CHECK((job.f.Status().state() == "evaluating") != use_averages);
  const auto heartbeat = job.f.Beat(0, 10);
  REQUIRE(heartbeat->has_value() == use_averages);
  if (use_averages) CHECK((**heartbeat)->finish());
}

}  // namespace
}  // namespace lockstep::chief
