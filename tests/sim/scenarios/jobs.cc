#include "tests/sim/scenarios/jobs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/sim/laws.h"

namespace lockstep::sim {
namespace {

OptimizerDef RandomOptimizer(Random* random) {
  OptimizerDef optimizer;
  switch (random->Below(5)) {
    case 0:
    case 1:
      return SgdOptimizer();
    case 2:
      optimizer.mutable_momentum()->set_momentum(0.875f);
      return optimizer;
    default:
      optimizer.mutable_adam()->set_lazy(random->Chance(0.5));
      return optimizer;
  }
}

}  // namespace

SimOptions SmallJob(uint64_t seed, Random random) {
  SimOptions options;
  options.seed = seed;
  options.ps = static_cast<uint32_t>(random.Between(1, 3));
  options.workers = static_cast<uint32_t>(random.Between(1, 4));
  options.aggregate = options.workers;
  options.steps = random.Between(1, 10);
  options.same_every_time = true;
  if (random.Chance(0.3)) options.network.loss = 0.03;
  if (random.Chance(0.3)) options.network.most_delay = absl::Milliseconds(30);
  return options;
}

SimOptions LargeJob(uint64_t seed) {
  Random random(seed ^ 0x1a49e);
  SimOptions options = SmallJob(seed, random);
  options.workers = options.aggregate = static_cast<uint32_t>(random.Between(1, 3));
  options.steps = random.Between(1, 3);
  options.variables = {random.Between(66'000, 150'000), 3};
  options.least_chunk = 20'000;
  options.most_chunk = 300'000;
  return options;
}

SimOptions CopiedJob(uint64_t seed, Random* random) {
  SimOptions options = SmallJob(seed, Random(seed ^ 0xc0b7));
  options.ps = static_cast<uint32_t>(random->Between(2, 3));
  options.workers = options.aggregate = static_cast<uint32_t>(random->Between(1, 3));
  options.steps = random->Between(10, 60);
  options.least_compute = absl::Milliseconds(50);
  options.most_compute = absl::Milliseconds(200);
  options.variables.clear();
  for (int64_t left = random->Between(options.ps, 6); left > 0; --left) {
    options.variables.push_back(random->Between(1, 6));
  }
  return options;
}

SimOptions SlowJob(uint64_t seed, int64_t steps, Random* random) {
  SimOptions options = CopiedJob(seed, random);
  options.steps = steps;
  options.least_compute = absl::Milliseconds(200);
  options.most_compute = absl::Milliseconds(600);
  return options;
}

void VaryUpdates(Random* random, SimOptions* options) {
  if (random->Chance(0.5)) {
    options->tables =
        static_cast<uint32_t>(random->Between(1, static_cast<int>(options->variables.size())));
    for (uint32_t i = 0; i < options->tables; ++i) options->variables[i] *= kRowElements;
  }
  options->optimizer = RandomOptimizer(random);
  if (random->Chance(0.25)) ++options->workers;
}

NetworkOptions RoughNetwork(Random* random) {
  NetworkOptions network;
  network.duplicates = 0.1;
  if (random->Chance(0.5)) network.loss = 0.03;
  if (random->Chance(0.5)) network.late = 0.5;
  if (random->Chance(0.5)) network.stalls = 0.003;
  if (random->Chance(0.3)) network.most_delay = absl::Milliseconds(30);
  return network;
}

void ProtectShards(const std::string& folder, Random* random, SimOptions* options) {
  options->copies = true;
  options->checkpoints = folder;
  options->save_every = random->Between(1, 10);
  if (random->Chance(0.5)) options->network = RoughNetwork(random);
}

void AppendBadEnd(const SimCluster& cluster, std::vector<std::string>* broken) {
  if (!cluster.end()->ok()) broken->push_back(cluster.end()->ToString());
  if (cluster.global_step() != GlobalStep(cluster.options().steps)) {
    broken->push_back("not all steps were made");
  }
}

void AppendReturn(Epoch from, SimCluster* cluster, std::vector<std::string>* broken) {
  const Epoch epoch = cluster->shard(0).GetView().epoch;
  if (epoch == from) return;
  broken->push_back(absl::StrCat("the job went back, to epoch ", epoch.value()));
}

std::string CompareDisturbed(const SimOptions& calm, const SimOptions& disturbed,
                             absl::FunctionRef<void(SimCluster*)> disturb, SimRun* run) {
  const auto judge = [](SimCluster* cluster, std::vector<std::string>* broken) {
    AppendBadEnd(*cluster, broken);
  };
  return CompareDisturbed(calm, disturbed, disturb, judge, run);
}

std::string CompareDisturbed(const SimOptions& calm, const SimOptions& disturbed,
                             absl::FunctionRef<void(SimCluster*)> disturb, Judge judge,
                             SimRun* run) {
  const bool is_compared = calm.aggregate == calm.workers;
  SimCluster undisturbed(calm, run);
  if (is_compared) {
    undisturbed.StartAll();
    if (!undisturbed.RunToEnd(kLimit)) return "the undisturbed run does not end";
  }
  SimCluster cluster(disturbed, run);
  cluster.StartAll();
  disturb(&cluster);
  if (!cluster.RunToEnd(kLimit)) return "no end: " + Describe(cluster);
  std::vector<std::string> broken;
  judge(&cluster, &broken);
  if (is_compared) {
    for (const std::string& line : Differences(&cluster, &undisturbed)) broken.push_back(line);
  }
  return absl::StrJoin(broken, "; ");
}

SimOptions LawfulJob(uint64_t seed, TokenPolicy policy) {
  Random random(seed ^ 0x5eed);
  SimOptions options;
  options.seed = seed;
  options.token_policy = policy;
  options.ps = static_cast<uint32_t>(random.Between(1, 3));
  options.workers = static_cast<uint32_t>(random.Between(1, 5));
  options.aggregate = static_cast<uint32_t>(
      random.Between(1, policy == FIFO ? 6 : static_cast<int>(options.workers)));
  options.steps = random.Between(1, 6);
  if (policy == FIFO && random.Chance(0.5)) {
    const int fewest =
        std::max(0, static_cast<int>(options.aggregate) - static_cast<int>(options.workers));
    options.init_tokens = random.Between(fewest, static_cast<int>(options.aggregate) + 2);
  }
  options.variables.clear();
  for (int i = random.Between(1, 4); i > 0; --i) options.variables.push_back(random.Between(1, 4));
  if (random.Chance(0.3)) options.network.loss = 0.05;
  if (random.Chance(0.5)) options.network.late = 0.5;
  if (random.Chance(0.3)) options.network.most_delay = absl::Milliseconds(50);
  if (random.Chance(0.3)) options.most_compute = absl::Milliseconds(100);
  return options;
}

SimOptions AsynchronousJob(uint64_t seed) {
  Random random(seed ^ 0xa5);
  SimOptions options;
  options.seed = seed;
  options.asynchronous = true;
  options.ps = static_cast<uint32_t>(random.Between(1, 4));  // one may be without variables
  options.workers = static_cast<uint32_t>(random.Between(1, 5));
  options.steps = random.Between(1, 40);
  if (random.Chance(0.5)) options.max_staleness = random.Between(0, 4);
  if (random.Chance(0.3)) options.network.loss = 0.05;
  if (random.Chance(0.3)) options.network.most_delay = absl::Milliseconds(50);
  if (random.Chance(0.3)) options.most_compute = absl::Milliseconds(100);
  return options;
}

std::string BadEnds(SimCluster* cluster) {
  std::vector<std::string> bad;
  const absl::Status end = cluster->end().value_or(absl::UnknownError("it has not ended"));
  if (!end.ok()) bad.push_back("the chief: " + end.ToString());
  for (const absl::Status& end : cluster->chief().Ends()) {
    if (end.ok() || absl::IsCancelled(end) || absl::IsAborted(end)) continue;
    bad.push_back(end.ToString());
  }
  return absl::StrJoin(bad, "; ");
}

}  // namespace lockstep::sim
