// Several losses that take turns, over real processes.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr char kAdversaries[] = R"(
  input_shape: [8, 8, 1]
  layers { name: "flat" flatten {} }
  layers { name: "d_hidden" dense { units: 16 } }
  layers { name: "d_relu" relu {} }
  layers { name: "d_logit" dense { units: 1 } }
  layers { name: "d_real_loss" sigmoid_cross_entropy { target: 0.9 } }
  layers { name: "noise" noise { shape: 4 } }
  layers { name: "g_hidden" dense { units: 12 } }
  layers { name: "g_norm" batch_norm { momentum: 0.9 } }
  layers { name: "g_image" dense { units: 64 } }
  layers { name: "made_hidden" variables_of: "d_hidden" dense { units: 16 } }
  layers { name: "made_relu" relu {} }
  layers { name: "made_logit" variables_of: "d_logit" dense { units: 1 } }
  layers { name: "d_made_loss" sigmoid_cross_entropy { target: 0 } }
  layers { name: "g_loss" inputs: "made_logit" sigmoid_cross_entropy { target: 1 } })";

// Each with what a checkpoint must carry for it: slots, Adam's powers, the schedule's place.
constexpr char kLosses[] = R"(
  losses {
    name: "generator" loss: "g_loss" trains: "g_" steps: 3
    optimizer { adam { beta1: 0.5 } learning_rate { base: 0.01 cosine { decay_steps: 40 } } }
  }
  losses {
    name: "discriminator" loss: "d_real_loss" loss: "d_made_loss" trains: "d_" steps: 2
    optimizer { rmsprop {} learning_rate { base: 0.001 } clipping { global_norm: 1 } }
  })";

JobText Adversaries(const std::string& checkpoints, int towers) {
  return {.global_batch = 24,
          .max_steps = 40,
          .losses = kLosses,
          .checkpoint = "folder: '" + checkpoints + "' every_steps: 17",
          .model = kAdversaries,
          .more = absl::StrCat("seed: 3 towers: ", towers)};
}

TEST_CASE("a run restored within a turn gives the losses of the run that went on") {
  for (const int towers : {1, 2}) {
    CAPTURE(towers);
    const TemporaryFolder saved;
    const std::vector<double> losses = LossesOf(2, 2, Adversaries(saved.path(), towers));
    REQUIRE(losses.size() == 40);
    for (const int ps : {1, 3}) {
      CAPTURE(ps);
      const std::vector<double> restored =
          LossesOf(ps, 2, Adversaries("again", towers), {"--restore=" + saved.Path("ckpt-17")});
      CHECK(restored == std::vector<double>(losses.begin() + 17, losses.end()));
    }
  }
}

// A load has labels, so the losses of its model take them.
constexpr char kTwoNetworks[] = R"(
  input_shape: [8, 8, 1]
  layers { name: "flat" flatten {} }
  layers { name: "a_hidden" dense { units: 16 } }
  layers { name: "a_norm" batch_norm { momentum: 0.9 } }
  layers { name: "a_scores" dense { units: 10 } }
  layers { name: "a_loss" softmax_cross_entropy {} }
  layers { name: "b_scores" inputs: "flat" dense { units: 10 } }
  layers { name: "b_loss" softmax_cross_entropy {} })";

TEST_CASE("losses take turns over loads, too") {
  for (const int towers : {1, 2}) {
    CAPTURE(towers);
    JobText job = Adversaries("unused", towers);
    job.model = kTwoNetworks;
    job.losses = absl::StrReplaceAll(
        kLosses, {{"loss: \"d_real_loss\" loss: \"d_made_loss\" trains: \"d_\"",
                   "loss: \"b_loss\" trains: \"b_\""},
                  {"loss: \"g_loss\" trains: \"g_\"", "loss: \"a_loss\" trains: \"a_\""}});
    job.checkpoint.clear();
    absl::StrAppend(&job.more, " batch_norm_updates: MEAN");
    const std::vector<double> batches = LossesOf(2, 1, job);
    REQUIRE(batches.size() == 40);
    job.global_batch = 0;
    const auto with = [&](const std::string& load) {
      JobText loads = job;
      absl::StrAppend(&loads.more, " local_sync { max_per_device_batch_size: ", 24 / towers, load,
                      " }");
      return LossesOf(2, 1, loads);
    };
    // A load of one batch is that batch.
    CHECK(with(" load: 24 passes: 1") == batches);
    const std::vector<double> passes = with(" load: 96 passes: 3");
    CHECK(passes.size() == 40);
    CHECK(passes == with(" load: 96 passes: 3"));
    CHECK(passes != batches);
  }
}

TEST_CASE("a job with one loss in its losses trains as one with an optimizer does") {
  JobText job{.global_batch = 24, .max_steps = 20, .model = kPlainModel, .more = "seed: 4"};
  const std::vector<double> alone = LossesOf(2, 2, job);
  job.losses =
      absl::StrCat("losses { name: 'only' loss: 'loss' trains: ['conv', 'scores'] optimizer { ",
                   job.optimizer, " } }");
  CHECK(LossesOf(2, 2, job) == alone);
}

}  // namespace
}  // namespace lockstep::test
