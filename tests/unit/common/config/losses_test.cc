#include <catch2/catch.hpp>

#include "absl/strings/str_replace.h"
#include "common/config/job.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

constexpr char kJob[] = R"(
  model: "model.textproto"
  data { csv { train: "a" test: "b" label_column: "0" } }
  global_batch: 12
  max_steps: 5
  losses {
    name: "generator" loss: "g_loss" trains: "g_" steps: 10
    optimizer { rmsprop {} learning_rate { base: 0.01 } }
  }
  losses {
    name: "discriminator" loss: "d_loss" trains: "d_"
    optimizer { adam { beta1: 0.5 } learning_rate { base: 0.02 } }
  })";

absl::StatusOr<LoadedJob> LoadText(const std::string& text) {
  test::TemporaryFolder folder;
  folder.Write("model.textproto", "input_shape: 4 layers { name: 'loss' l2_loss {} }");
  return LoadJob(folder.Write("job.textproto", text));
}

TEST_CASE("losses have the defaults of an optimizer, and such a job is not evaluated") {
  const auto loaded = LoadText(kJob);
  INFO(loaded.status().ToString());
  REQUIRE(loaded.ok());
  REQUIRE(loaded->job.losses_size() == 2);
  CHECK(loaded->job.losses(0).steps() == 10);
  CHECK(loaded->job.losses(1).steps() == 1);
  CHECK_FALSE(loaded->job.has_optimizer());
  CHECK(loaded->job.evaluation().not_at_end());
  // The same as in a job with one optimizer.
  const auto plain = LoadText(R"(
      model: "model.textproto"
      data { csv { train: "a" label_column: "0" } }
      global_batch: 12
      max_steps: 5
      optimizer { adam { beta1: 0.5 } learning_rate { base: 0.02 } })");
  REQUIRE(plain.ok());
  CHECK(loaded->job.losses(1).optimizer().SerializeAsString() ==
        plain->job.optimizer().SerializeAsString());
}

TEST_CASE("what is wrong with losses is told by their name and field") {
  const auto error = [](const std::string& from, const std::string& to) {
    const std::string text = absl::StrReplaceAll(kJob, {{from, to}});
    REQUIRE(text != kJob);
    const absl::Status status = LoadText(text).status();
    CHECK(absl::IsInvalidArgument(status));
    const std::string message(status.message());
    CHECK_THAT(message, Contains("Remedy: "));
    return message;
  };
  CHECK_THAT(error("max_steps: 5", "max_steps: 5 optimizer { sgd {} learning_rate { base: 1 } }"),
             Contains("optimizer: losses have optimizers of their own"));
  CHECK_THAT(error("max_steps: 5", "max_steps: 5 sync { asynchronous {} }"),
             Contains("sync.asynchronous: losses take turns"));
  CHECK_THAT(error("max_steps: 5", "max_steps: 5 evaluation { every_steps: 2 }"),
             Contains("evaluation.every_steps: a job with several losses is not evaluated"));
  CHECK_THAT(error("\"generator\"", "\"a/b\""),
             Contains("losses.name: expected 1 to 100 letters, digits or '_', got \"a/b\""));
  CHECK_THAT(error("generator", std::string(101, 'x')), Contains("losses.name: expected 1 to 100"));
  CHECK_THAT(error("\"generator\"", "\"discriminator\""),
             Contains("two losses are called \"discriminator\""));
  CHECK_THAT(error("loss: \"g_loss\"", ""), Contains("losses \"generator\": loss: it is missing"));
  CHECK_THAT(error("trains: \"d_\"", ""),
             Contains("losses \"discriminator\": trains: it is missing"));
  CHECK_THAT(error("steps: 10", "steps: -1"), Contains("losses \"generator\": steps: expected 1"));
  CHECK_THAT(error("beta1: 0.5", "beta1: 1.5"),
             Contains("losses \"discriminator\": optimizer.adam.beta1: expected"));
  CHECK_THAT(error("base: 0.01", "base: -1"),
             Contains("losses \"generator\": optimizer.learning_rate.base: expected a positive"));
  CHECK_THAT(error("rmsprop {}", ""), Contains("losses \"generator\": optimizer: it has no kind"));
  CHECK_THAT(error("rmsprop {}", "rmsprop {} variable_averages { decay: 0.9 }"),
             Contains("losses \"generator\": optimizer.variable_averages: a job with several"));
}

}  // namespace
}  // namespace lockstep
