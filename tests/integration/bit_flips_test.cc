// Whole jobs on whose way between two processes bits flip that TCP does not notice.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "deploy/cli/ports.h"
#include "tests/integration/training_run.h"
#include "tests/support/fault_proxy.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Minutes(1);
// In each step 300 KiB travel between workers and ps, 75 KiB to a worker.
constexpr int64_t kBytesBetweenFlips = 256 << 10;

constexpr char kWideModel[] = R"(
  input_shape: [8, 8, 1]
  layers { name: "flat" flatten {} }
  layers { name: "hidden" dense { units: 256 } }
  layers { name: "relu" relu {} }
  layers { name: "scores" dense { units: 10 } }
  layers { name: "loss" softmax_cross_entropy {} })";

JobText Job(const std::string& checkpoint, const std::string& transport,
            const std::string& more = "") {
  return {.optimizer = "momentum { momentum: 0.9 } learning_rate { base: 0.05 }",
          .checkpoint = absl::StrCat("folder: '", checkpoint, "'"),
          .model = kWideModel,
          .more = absl::StrCat("seed: 7 transport { shared_memory: OFF ", transport, " } ", more)};
}

struct Outcome {
  std::vector<double> losses;
  int flips = 0;
  std::string logs;
};

// One ps and two workers; the one at this address of the spec is behind a proxy that flips bits.
Outcome Run(bool ps_is_behind, const JobText& job) {
  Cluster cluster(1, 2);
  const auto real = deploy::PortReservation::Take(1).value();
  FaultProxy proxy(ps_is_behind ? cluster.spec().ps[0] : cluster.spec().workers[1],
                   real.addresses()[0]);
  proxy.FlipBits(kBytesBetweenFlips);
  const std::string listen = "--listen=" + real.addresses()[0];
  std::vector<std::unique_ptr<Process>> processes;
  const auto start = [&](std::vector<std::string> command, bool is_behind) {
    if (is_behind) command.push_back(listen);
    processes.push_back(std::make_unique<Process>(std::move(command)));
  };
  start(cluster.Ps(0), ps_is_behind);
  start(cluster.Worker(0), false);
  start(cluster.Worker(1), !ps_is_behind);
  start(cluster.Chief(cluster.WriteJob(job)), false);
  const bool ends_well = processes.back()->Wait(kWhole) == 0;
  Outcome outcome{.flips = proxy.num_flips()};
  for (const auto& process : processes) absl::StrAppend(&outcome.logs, process->Output());
  if (!ends_well) FAIL(outcome.logs);
  outcome.losses = Losses(nlohmann::json::parse(cluster.Summary()));
  return outcome;
}

int CorruptMessages(const std::string& logs) {
  int number = 0;
  for (size_t at = 0; (at = logs.find("dropped a corrupt message", at)) != std::string::npos;
       ++at) {
    ++number;
  }
  return number;
}

TEST_CASE("Bits that flip between workers and a ps change no bit of a job with checksums") {
  const TemporaryFolder saved;
  const JobText undisturbed = Job(saved.Path("undisturbed"), "");
  const std::vector<double> losses = LossesOf(1, 2, undisturbed);
  const Outcome checked = Run(/*ps_is_behind=*/true, Job(saved.Path("checked"), "checksums: true"));
  INFO(checked.logs);
  CHECK(checked.flips > 5);
  CHECK(CorruptMessages(checked.logs) > 5);
  CHECK(checked.losses == losses);
  CHECK(TensorsOf(saved.Path("checked/ckpt-60")) == TensorsOf(saved.Path("undisturbed/ckpt-60")));
  // What is flipped is what nothing else notices.
  const Outcome unchecked = Run(/*ps_is_behind=*/true, Job(saved.Path("unchecked"), ""));
  CHECK(unchecked.flips > 5);
  CHECK(unchecked.losses != losses);
}

TEST_CASE("Bits that flip between workers change no bit of a replicated job with checksums") {
  const TemporaryFolder saved;
  const std::string replicated = "strategy { replicated {} }";
  const std::vector<double> losses = LossesOf(1, 2, Job(saved.Path("undisturbed"), "", replicated));
  const Outcome checked =
      Run(/*ps_is_behind=*/false, Job(saved.Path("checked"), "checksums: true", replicated));
  INFO(checked.logs);
  CHECK(checked.flips > 5);
  CHECK(CorruptMessages(checked.logs) > 5);
  CHECK(checked.losses == losses);
}

}  // namespace
}  // namespace lockstep::test
