// What the losses of a model ask of its job.
#include "chief/plan/losses.h"

#include <utility>

#include "chief/plan/messages.h"
#include "common/base/exit_code.h"
#include "tests/unit/chief/plan/plan_fixture.h"

namespace lockstep::chief {
namespace {

TEST_CASE("a model with nothing to train, or with two losses, is refused") {
  Fixture f;
  const auto error = [&f](const std::string& model) {
    f.folder.Write("model.textproto", "input_shape: [2] " + model);
    const absl::Status status = f.Make().status();
    CHECK(ExitCodeFor(status) == ExitCode::kBadConfiguration);
    return status;
  };
  const std::string loss = "layers { name: 'loss' softmax_cross_entropy {} }";
  CHECK(Mentions(error(loss), "model: it has nothing to train"));
  CHECK(Mentions(error("layers { name: 'fc' frozen: true dense { units: 3 } }" + loss),
                 "remove frozen: true from one"));
  CHECK(Mentions(error("layers { name: 'fc' dense { units: 3 } }" + loss +
                       "layers { name: 'two' inputs: 'fc' softmax_cross_entropy {} }"),
                 "losses: the model has several losses, \"loss\" and \"two\""));
}

constexpr char kAdversaries[] = R"(
  input_shape: [2]
  layers { name: "d_real" dense { units: 1 } }
  layers { name: "d_real_loss" sigmoid_cross_entropy { target: 1 } }
  layers { name: "noise" noise { shape: [3] } }
  layers { name: "g_made" dense { units: 2 } }
  layers { name: "g_norm" batch_norm {} }
  layers { name: "d_made" variables_of: "d_real" dense { units: 1 } }
  layers { name: "d_made_loss" sigmoid_cross_entropy { target: 0 } }
  layers { name: "g_loss" inputs: "d_made" sigmoid_cross_entropy { target: 1 } }
)";

constexpr char kLosses[] = R"(
  losses { name: "generator" loss: "g_loss" trains: "g_" steps: 2
           optimizer { rmsprop {} learning_rate { base: 0.5 } } }
  losses { name: "discriminator" loss: "d_real_loss" loss: "d_made_loss" trains: "d_"
           optimizer { adam {} learning_rate { base: 1 piecewise { boundaries: [5] values: [2, 3] } } } }
)";

struct AdversariesFixture : Fixture {
  AdversariesFixture() { folder.Write("model.textproto", kAdversaries); }
  // With one text in model and losses replaced.
  absl::StatusOr<JobPlan> MakeWith(const std::string& from = "", const std::string& to = "") {
    std::string losses = absl::StrReplaceAll(kLosses, {{"base: 1 piecewise", "piecewise"}});
    std::string model = kAdversaries;
    if (!from.empty()) {
      REQUIRE((absl::StrContains(losses, from) || absl::StrContains(model, from)));
      losses = absl::StrReplaceAll(losses, {{from, to}});
      model = absl::StrReplaceAll(model, {{from, to}});
    }
    folder.Write("model.textproto", model);
    Write(absl::StrReplaceAll(
        kJob, {{"optimizer { momentum { momentum: 0.9 } learning_rate { base: 0.5 } }", losses}}));
    return Make();
  }
};

TEST_CASE("a plan of several losses has their turns, optimizers and learning rates") {
  AdversariesFixture f;
  absl::StatusOr<JobPlan> plan = f.MakeWith();
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  std::vector<std::pair<std::string, uint32_t>> losses;
  for (const VariableSpec& spec : plan->placement.variables()) {
    losses.emplace_back(spec.name(), spec.loss());
  }
  CHECK(losses == std::vector<std::pair<std::string, uint32_t>>{{"d_real/kernel", 2},
                                                                {"d_real/bias", 2},
                                                                {"g_made/kernel", 1},
                                                                {"g_made/bias", 1},
                                                                {"g_norm/gamma", 1},
                                                                {"g_norm/beta", 1},
                                                                {"g_norm/moving_mean", 1},
                                                                {"g_norm/moving_variance", 1},
                                                                {"train/loss", 0}});
  CHECK(std::vector<int64_t>(plan->placement.turns().begin(), plan->placement.turns().end()) ==
        std::vector<int64_t>{2, 1});
  CHECK(plan->optimizer == "generator: rmsprop, discriminator: adam");
  std::vector<float> rates;
  for (int64_t step = 0; step < 9; ++step) rates.push_back(plan->learning_rate(GlobalStep(step)));
  CHECK(rates == std::vector<float>{.5f, .5f, 2, .5f, .5f, 2, .5f, .5f, 3});
  for (VariableSpec& spec : *plan->placement.mutable_variables()) spec.set_shard(spec.loss());
  plan->placement.set_shards(4);
  const std::vector<GradientTurns> turns = TurnsOfShards(plan->placement);
  const auto expects = [&](size_t shard, GlobalStep at) { return turns[shard].ExpectsAny(at); };
  for (int64_t step = 0; step < 6; ++step) {
    CAPTURE(step);
    const bool is_second = step % 3 == 2;
    CHECK(expects(0, GlobalStep(step)));
    CHECK(expects(1, GlobalStep(step)) == !is_second);
    CHECK(expects(2, GlobalStep(step)) == is_second);
    CHECK_FALSE(expects(3, GlobalStep(step)));
  }
  const CreateVariablesRequest request = ToCreateVariables(*plan);
  REQUIRE(request.losses_size() == 2);
  CHECK(request.losses(1).optimizer().has_adam());
  CHECK_FALSE(request.optimizer().has_adam());
}

TEST_CASE("losses that do not fit the model are refused by name") {
  AdversariesFixture f;
  const auto error = [&f](const std::string& from, const std::string& to) {
    const absl::Status status = f.MakeWith(from, to).status();
    CHECK(ExitCodeFor(status) == ExitCode::kBadConfiguration);
    CHECK(Mentions(status, "job.textproto"));
    CHECK(Mentions(status, "Remedy: "));
    return status;
  };
  CHECK(Mentions(error("loss: \"g_loss\"", "loss: \"g_los\""),
                 "losses \"generator\": loss: the model has no loss layer \"g_los\"; did you mean "
                 "\"g_loss\"?"));
  CHECK(Mentions(error("loss: \"g_loss\"", "loss: \"g_made\""), "has no loss layer \"g_made\""));
  CHECK(Mentions(error("loss: \"g_loss\"", "loss: \"g_loss\" loss: \"g_loss\""), "comes twice"));
  CHECK(Mentions(error("trains: \"d_\"", "trains: \"d_\" trains: \"g_norm\""),
                 "losses \"discriminator\": trains: variable g_norm/gamma is already trained by "
                 "\"generator\""));
  CHECK(Mentions(error("trains: \"g_\"", "trains: \"g_norm\""),
                 "losses: no loss trains variable g_made/kernel"));
  CHECK(Mentions(error("trains: \"d_\"", "trains: \"e_\""),
                 "losses \"discriminator\": trains: it trains no variable"));
  CHECK(Mentions(error("loss: \"d_made_loss\"", ""),
                 "losses: no loss names the model's \"d_made_loss\""));
  CHECK(Mentions(error("loss: \"d_real_loss\" loss: \"d_made_loss\" trains: \"d_\"",
                       "loss: \"d_real_loss\" loss: \"d_made_loss\" trains: \"g_\""),
                 "already trained by"));
  CHECK(
      Mentions(error("loss: \"g_loss\"", "loss: \"d_real_loss\""),
               "losses \"generator\": trains: its loss does not depend on variable g_made/kernel"));
}

TEST_CASE("a model that takes no labels is trained and cannot be evaluated") {
  Fixture f;
  f.folder.Write("model.textproto", R"(
      input_shape: [2]
      layers { name: "fc" dense { units: 1 } }
      layers { name: "loss" sigmoid_cross_entropy { target: 1 } })");
  CHECK(Mentions(f.Make().status(), "evaluation: there is a test set"));
  CHECK(Mentions(f.Fail("max_steps: 10", "max_steps: 10 evaluation { every_steps: 2 }"),
                 "evaluation.every_steps: no loss of the model takes labels"));
  CHECK(Mentions(f.Fail("global_batch: 4", "local_sync {} evaluation { not_at_end: true }"),
                 "local_sync: it loads examples with labels"));
  CHECK(f.Fail("max_steps: 10", "max_steps: 10 evaluation { not_at_end: true }").ok());
  CHECK(f.Fail("test: \"test.csv\"", "").ok());
}

}  // namespace
}  // namespace lockstep::chief
