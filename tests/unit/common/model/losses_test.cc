// Models with several losses, with layers that share variables, and with noise.
#include "absl/strings/match.h"
#include "tests/unit/common/model/model_text.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

constexpr char kAdversaries[] = R"(
    input_shape: [8]
    layers { name: "d_real" dense { units: 1 } }
    layers { name: "d_real_loss" sigmoid_cross_entropy { target: 1 } }
    layers { name: "noise" noise { shape: [3] } }
    layers { name: "g_made" dense { units: 8 } }
    layers { name: "g_norm" batch_norm {} }
    layers { name: "d_made" variables_of: "d_real" dense { units: 1 } }
    layers { name: "d_made_loss" sigmoid_cross_entropy { target: 0 } }
    layers { name: "g_loss" inputs: "d_made" sigmoid_cross_entropy { target: 1 } })";

TEST_CASE("A graph may have several losses, and layers that use another's variables") {
  const auto graph = BuildText(kAdversaries);
  REQUIRE(graph.ok());
  CHECK(graph->loss_nodes() == std::vector<int>{2, 7, 8});
  CHECK(graph->loss_node() == 2);
  CHECK_FALSE(graph->uses_labels());
  CHECK_FALSE(graph->is_classifier());
  CHECK(graph->nodes()[3].inputs.empty());
  CHECK(graph->nodes()[3].output == Shape({3}));
  CHECK(graph->nodes()[6].variables == graph->nodes()[1].variables);
  CHECK(graph->variables().size() == 2 + 2 + 4 + 1);
  for (int node = 0; node < 9; ++node) CHECK(graph->IsReached(node));
}

TEST_CASE("The graph of a layer predicts its output and reaches what that depends on") {
  const auto whole = BuildText(kAdversaries);
  REQUIRE(whole.ok());
  const ModelGraph made = whole->ForLayer(4);
  CHECK(made.num_outputs() == 8);
  CHECK(made.labels_per_example() == 1);
  CHECK_FALSE(made.is_classifier());
  CHECK_FALSE(made.uses_labels());
  for (int node = 0; node < 9; ++node) CHECK(made.IsReached(node) == (node == 3 || node == 4));
  CHECK(made.variables().size() == whole->variables().size());
}

TEST_CASE(
    "The graph of some losses reaches what they depend on and freezes what they do not train") {
  const auto whole = BuildText(kAdversaries);
  REQUIRE(whole.ok());
  const auto frozen = [](const ModelGraph& graph) {
    std::vector<std::string> names;
    for (const ModelVariable& variable : graph.variables()) {
      if (variable.frozen) names.push_back(variable.name);
    }
    return names;
  };
  const ModelGraph generator = whole->ForLosses(
      {8}, [&](int variable) { return absl::StartsWith(whole->variables()[variable].name, "g_"); });
  CHECK(generator.loss_nodes() == std::vector<int>{8});
  CHECK(generator.loss_node() == 8);
  CHECK_FALSE(generator.IsReached(0));  // the data
  CHECK_FALSE(generator.IsReached(1));
  CHECK(generator.IsReached(3));
  CHECK(generator.IsReached(6));
  CHECK_FALSE(generator.IsReached(7));
  CHECK(frozen(generator) == std::vector<std::string>{"d_real/kernel", "d_real/bias"});
  const ModelGraph discriminator = whole->ForLosses({2, 7}, [&](int variable) {
    return absl::StartsWith(whole->variables()[variable].name, "d_");
  });
  CHECK(discriminator.IsReached(0));
  CHECK(discriminator.IsReached(5));
  CHECK_FALSE(discriminator.IsReached(8));
  CHECK(frozen(discriminator) ==
        std::vector<std::string>{"g_made/kernel", "g_made/bias", "g_norm/gamma", "g_norm/beta",
                                 "g_norm/moving_mean", "g_norm/moving_variance"});
}

TEST_CASE("Losses that take labels take the same ones, and the first of them is evaluated") {
  const auto with = [](const std::string& second) {
    return R"(input_shape: 4
        layers { name: "constant" sigmoid_cross_entropy { target: 0.5 } }
        layers { name: "y" inputs: "input" dense { units: 3 } }
        layers { name: "one" l2_loss {} }
        layers { name: "z" inputs: "input" dense { units: 3 } }
        layers { name: "narrow" inputs: "input" dense { units: 2 } }
        layers { name: "rest" inputs: "narrow" sigmoid_cross_entropy { target: 1 } }
        layers { name: "two" )" +
           second + " }";
  };
  const auto graph = BuildText(with("inputs: 'z' sigmoid_cross_entropy {}"));
  REQUIRE(graph.ok());
  CHECK(graph->uses_labels());
  CHECK(graph->nodes()[graph->loss_node()].name == "one");
  CHECK(graph->num_outputs() == 3);
  CHECK_THAT(BuildError(with("inputs: 'z' softmax_cross_entropy {}")),
             Contains("needs other labels than \"one\": softmax_cross_entropy of [3] against "
                      "l2_loss of [3]"));
  CHECK_THAT(BuildError(with("inputs: 'narrow' l2_loss {}")),
             Contains("l2_loss of [2] against l2_loss of [3]"));
}

TEST_CASE("Variables are shared by layers of one kind whose shapes fit") {
  const auto with = [](const std::string& layer) {
    return R"(input_shape: [4, 4, 2]
        layers { name: "conv" conv2d { filters: 2 kernel: 3 } }
        layers { name: "norm" batch_norm {} }
        layers { name: "twin" variables_of: "conv" conv2d { filters: 2 kernel: 3 strides: 2 } }
        layers { name: "flat" flatten {} }
        layers { name: "fc" dense { units: 2 } }
        layers { )" +
           layer + R"( }
        layers { name: "end" flatten {} }
        layers { name: "loss" softmax_cross_entropy {} })";
  };
  CHECK(BuildText(with("name: 'x' relu {}")).ok());
  CHECK_THAT(BuildError(with("name: 'x' variables_of: 'fd' dense { units: 2 }")),
             Contains("variables_of: there is no layer \"fd\"; did you mean \"fc\"?"));
  CHECK_THAT(BuildError(with("name: 'x' variables_of: 'end' dense { units: 2 }")),
             Contains("variables_of: \"end\" does not stand ahead of it"));
  CHECK_THAT(BuildError(with("name: 'x' variables_of: 'fc' dense { units: 2 }")),
             Contains("expected a dense layer with 2 variables of its own, which its inputs fit, "
                      "got \"fc\" (dense) with fc/kernel [8,2], fc/bias [2]"));
  CHECK_THAT(
      BuildError(with("name: 'x' inputs: 'flat' variables_of: 'fc' dense { units: 2 no_bias: "
                      "true }")),
      Contains("expected a dense layer with 1 variables"));
  CHECK_THAT(BuildError(with("name: 'x' variables_of: 'conv' dense { units: 2 }")),
             Contains("got \"conv\" (conv2d)"));
  CHECK_THAT(BuildError(with("name: 'x' variables_of: 'flat' relu {}")),
             Contains("got \"flat\" (flatten) with none"));
  CHECK_THAT(BuildError(with("name: 'x' inputs: 'conv' variables_of: 'twin' conv2d { filters: 2 "
                             "kernel: 3 }")),
             Contains("layer with 2 variables of its own"));
  CHECK_THAT(BuildError(with("name: 'x' inputs: 'conv' variables_of: 'norm' batch_norm {}")),
             Contains("norm/moving_mean is a statistic"));
  CHECK_THAT(BuildError(with("name: 'x' inputs: 'flat' frozen: true variables_of: 'fc' dense { "
                             "units: 2 }")),
             Contains("frozen: its variables are those of \"fc\""));
  CHECK_THAT(BuildError(R"(input_shape: [4]
        layers { name: "a" embedding { rows: 4 dim: 2 } }
        layers { name: "b" inputs: "input" variables_of: "a" embedding { rows: 4 dim: 2 } }
        layers { name: "sum" inputs: ["a", "b"] add {} }
        layers { name: "loss" softmax_cross_entropy {} })"),
             Contains("a/table is a table"));
}

TEST_CASE("Noise has a shape and no inputs, and a constant target is a probability") {
  const auto with = [](const std::string& layer) {
    return "input_shape: 4 layers { name: 'z' " + layer +
           " } layers { name: 'all' inputs: ['z', 'input'] concatenate {} }"
           " layers { name: 'loss' softmax_cross_entropy {} }";
  };
  CHECK(BuildText(with("noise { shape: 3 }")).ok());
  for (const char* shape : {"", "shape: 0", "shape: [2, -1]", "shape: [1,1,1,1,1,1,1,1]"}) {
    CHECK_THAT(BuildError(with(std::string("noise { ") + shape + " }")),
               Contains("layer \"z\" (noise): shape: expected the shape for one example"));
  }
  CHECK_THAT(BuildError(with("noise { shape: [4000000000, 4000000000, 4000000000] }")),
             Contains("the output"));
  CHECK_THAT(BuildError(with("inputs: 'input' noise { shape: 3 }")),
             Contains("inputs: expected none, got 1"));
  CHECK_THAT(BuildError(with("frozen: true noise { shape: 3 }")), Contains("no variables"));
  for (const char* target : {"-0.1", "1.5", "nan"}) {
    CHECK_THAT(
        BuildError(std::string("input_shape: 4 layers { name: 'loss' sigmoid_cross_entropy { "
                               "target: ") +
                   target + " } }"),
        Contains("target: expected a number from 0 to 1"));
  }
  CHECK_THAT(BuildError("input_shape: [4, 2] layers { name: 'l' sigmoid_cross_entropy {} }"),
             Contains("expected an input of rank 1, got [4,2]"));
}

}  // namespace
}  // namespace lockstep
