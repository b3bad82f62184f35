#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/exit_code.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::sim {
namespace {

// After the last step, where all workers but one are lost: until their leases have ended, and a
// chief that is started again has asked its ps.
constexpr absl::Duration kLongestEnd = absl::Seconds(10);

SimOptions ReplicatedJob(uint64_t seed) {
  Random random(seed ^ 0x4e91);
  SimOptions options;
  options.seed = seed;
  options.replicated = true;
  options.same_every_time = true;
  options.ps = static_cast<uint32_t>(random.Between(1, 2));
  options.workers = options.aggregate = static_cast<uint32_t>(random.Between(2, 4));
  options.steps = random.Between(1, 12);
  if (random.Chance(0.3)) options.network.loss = 0.02;
  if (random.Chance(0.3)) options.network.most_delay = absl::Milliseconds(30);
  return options;
}

// What workers had, by epoch, version and variable; an error: two had different bits.
using Versions = std::map<std::tuple<Epoch, GlobalStep, uint32_t>, std::vector<float>>;
absl::StatusOr<Versions> VersionsOf(const SimCluster& cluster) {
  Versions versions;
  const std::vector<int64_t>& sizes = cluster.options().variables;
  for (const Pulled& pulled : cluster.history().pulled) {
    // Of what the ps sent, pieces are left out.
    const bool is_loss = pulled.variable == sizes.size();
    if (static_cast<int64_t>(pulled.values.size()) < (is_loss ? 1 : sizes[pulled.variable])) {
      continue;
    }
    const auto [found, is_new] =
        versions.try_emplace({pulled.epoch, pulled.version, pulled.variable}, pulled.values);
    if (!is_new && found->second != pulled.values) {
      return absl::InternalError(absl::StrCat(
          "version ", pulled.version.value(), ", variable ", pulled.variable, ": one worker had ",
          absl::StrJoin(found->second, ", "), ", another ", absl::StrJoin(pulled.values, ", ")));
    }
  }
  return versions;
}

bool AllLive(SimCluster* cluster) {
  for (uint32_t i = 0; i < cluster->options().workers; ++i) {
    if (cluster->worker(i).is_dead()) return false;
  }
  return true;
}

bool HasNothingLeft(SimCluster* cluster) {
  return cluster->end().has_value() || cluster->status().state() == "done" ||
         cluster->global_step() == GlobalStep(cluster->options().steps);
}

// Kills a worker now and then, at times the chief with it, and starts them again. `waits`: not
// before a step has closed since the last death, so that the variables are never lost.
struct ReplicaDeaths {
  SimCluster* cluster;
  Random random;
  bool waits;
  int left;
  double with_chief = 0.2;
  absl::Duration longest_pause = absl::Seconds(9);  // of a worker
  absl::Duration longest_chief_pause = absl::Seconds(4);
  GlobalStep next_step = GlobalStep(0);
  bool has_chief = true;

  void Plan() {
    if (left == 0) return;
    cluster->events().After(random.Between(absl::ZeroDuration(), absl::Milliseconds(40)),
                            [this] { Die(); });
  }
  void Die() {
    if (HasNothingLeft(cluster)) return;
    const bool may_die = AllLive(cluster) && cluster->global_step() >= next_step;
    if (waits && !may_die) return Plan();
    SimWorker* const victim =
        &cluster->worker(static_cast<uint32_t>(random.Below(cluster->options().workers)));
    if (victim->is_dead()) return Plan();
    --left;
    victim->Kill();
    next_step = GlobalStep(cluster->global_step().value() + 2);
    cluster->events().After(random.Between(absl::ZeroDuration(), longest_pause),
                            [victim] { victim->Start(); });
    if (has_chief && random.Chance(with_chief)) KillChief();
    Plan();
  }
  void KillChief() {
    has_chief = false;
    cluster->chief().Kill();
    cluster->events().After(random.Between(absl::ZeroDuration(), longest_chief_pause), [this] {
      cluster->StartChief();
      has_chief = true;
    });
  }
};

// Some of them are started again; all, where the chief dies with them: the next one may have to
// make the last step once more.
void KillAllButOne(Random random, SimCluster* cluster) {
  const bool with_chief = random.Chance(0.2);
  const uint64_t survivor = random.Below(cluster->options().workers);
  for (uint32_t i = 0; i < cluster->options().workers; ++i) {
    if (i == survivor) continue;
    SimWorker* const victim = &cluster->worker(i);
    victim->Kill();
    if (!with_chief && random.Chance(0.5)) continue;
    cluster->events().After(random.Between(absl::ZeroDuration(), absl::Seconds(4)),
                            [victim] { victim->Start(); });
  }
  if (!with_chief) return;
  cluster->chief().Kill();
  cluster->events().After(random.Between(absl::ZeroDuration(), absl::Seconds(2)),
                          [cluster] { cluster->StartChief(); });
}

std::string CompareVersions(const SimCluster& cluster, const Versions& expected) {
  const absl::StatusOr<Versions> versions = VersionsOf(cluster);
  if (!versions.ok()) return std::string(versions.status().message());
  for (const auto& [key, values] : *versions) {
    const auto found = expected.find(key);
    if (found != expected.end() && found->second == values) continue;
    const auto& [epoch, version, variable] = key;
    return absl::StrCat("variable ", variable, " of version ", version.value(), " differs");
  }
  return "";
}

}  // namespace

// With odd seeds one chief after the other, each in place before all members have heard of the
// last.
std::string SimulateReplicatedDeaths(uint64_t seed, SimRun* run) {
  SimOptions options = ReplicatedJob(seed);
  const bool chiefs_die = seed % 2 == 1;
  if (chiefs_die) {
    options.steps += 8;
    options.network.most_delay = absl::Milliseconds(seed % 4 == 1 ? 5 : 30);
    options.heartbeat_pause = absl::Milliseconds(500);
  }
  SimCluster undisturbed(options, run);
  undisturbed.StartAll();
  if (!undisturbed.RunToEnd(kLimit)) return "the undisturbed run does not end";
  const absl::StatusOr<Versions> expected = VersionsOf(undisturbed);
  if (!expected.ok()) return std::string(expected.status().message());
  if (expected->size() != options.steps * (options.variables.size() + 1))
    return "the undisturbed run has not all versions";

  SimCluster cluster(options, run);
  ReplicaDeaths deaths{&cluster, Random(seed ^ 0xdead), /*waits=*/true, /*left=*/3};
  if (chiefs_die) {
    deaths.left = 5;
    deaths.with_chief = 0.9;
    deaths.longest_pause = deaths.longest_chief_pause = absl::Milliseconds(300);
  }
  cluster.StartAll();
  deaths.Plan();
  if (!cluster.RunToEnd(kLimit)) return "no end: " + Describe(cluster);
  if (!cluster.end()->ok()) return cluster.end()->ToString();
  if (cluster.global_step() != GlobalStep(options.steps)) return "not all steps were made";
  return CompareVersions(cluster, *expected);
}

// With half of the seeds every version is stored: the worker that is to store it may be lost.
std::string SimulateReplicatedDisaster(uint64_t seed, SimRun* run) {
  SimOptions options = ReplicatedJob(seed);
  const bool shrinks = seed % 2 == 0;
  options.quorum_policy = shrinks ? SHRINK : WAIT;
  const test::TemporaryFolder folder(test::TemporaryFolder::kInMemory);
  if (seed % 4 < 2) {
    options.save_every = 1;
    options.checkpoints = folder.path();
  }
  SimCluster cluster(options, run);
  ReplicaDeaths deaths{&cluster, Random(seed ^ 0xdead), /*waits=*/false, /*left=*/4};
  cluster.StartAll();
  deaths.Plan();
  if (!cluster.RunToEnd(kLimit)) return "no end: " + Describe(cluster);
  if (const auto versions = VersionsOf(cluster); !versions.ok()) {
    return std::string(versions.status().message());
  }
  if (cluster.end()->ok() || ExitCodeFor(*cluster.end()) == ExitCode::kPeersLost) return "";
  return cluster.end()->ToString();
}

std::string SimulateReplicatedEnds(uint64_t seed, SimRun* run) {
  const test::TemporaryFolder folder(test::TemporaryFolder::kInMemory);
  SimOptions options = ReplicatedJob(seed);
  options.save_every = options.steps;
  options.checkpoints = folder.Path("undisturbed");
  SimCluster undisturbed(options, run);
  undisturbed.StartAll();
  if (!undisturbed.RunToEnd(kLimit)) return "the undisturbed run does not end";

  options.checkpoints = folder.Path("disturbed");
  SimCluster cluster(options, run);
  cluster.StartAll();
  const auto all_closed = [&] { return cluster.global_step() == GlobalStep(options.steps); };
  if (!cluster.RunUntil(all_closed, kLimit)) return "not all steps were made: " + Describe(cluster);
  const absl::Duration closed_at = cluster.events().Monotonic();
  KillAllButOne(Random(seed ^ 0xdead), &cluster);
  const auto has_ended = [&] { return cluster.end().has_value(); };
  if (!cluster.RunUntil(has_ended, kLimit)) return "no end: " + Describe(cluster);
  if (!cluster.end()->ok()) return cluster.end()->ToString();
  if (const absl::Duration took = cluster.events().Monotonic() - closed_at; took > kLongestEnd) {
    return absl::StrCat("the job ended ", absl::FormatDuration(took), " after its last step");
  }
  for (uint32_t i = 0; i < options.variables.size(); ++i) {
    if (undisturbed.SavedValues(i).empty() ||
        cluster.SavedValues(i) != undisturbed.SavedValues(i)) {
      return absl::StrCat("variable ", i, " of the last version differs");
    }
  }
  return "";
}

}  // namespace lockstep::sim
