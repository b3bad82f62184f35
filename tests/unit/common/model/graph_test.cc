#include "common/model/graph.h"

#include "tests/unit/common/model/model_text.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

std::vector<std::string> VariableNames(const ModelGraph& graph) {
  std::vector<std::string> names;
  for (const ModelVariable& variable : graph.variables()) names.push_back(variable.name);
  return names;
}

constexpr char kLoss[] = R"( layers { name: "loss" softmax_cross_entropy {} } )";

TEST_CASE("A convolutional classifier gets its shapes and variables in forward order") {
  const auto graph = BuildText(R"(
      name: "cnn" input_shape: [28, 28, 1]
      layers { name: "conv1" conv2d { filters: 16 kernel: 3 } }
      layers { name: "bn" batch_norm {} }
      layers { name: "relu1" relu {} }
      layers { name: "pool1" max_pool { window: 2 } }
      layers { name: "flat" flatten {} }
      layers { name: "fc" dense { units: 10 } }
      layers { name: "loss" softmax_cross_entropy {} })");
  REQUIRE(graph.ok());
  CHECK(graph->name() == "cnn");
  CHECK(graph->input_shape() == Shape({28, 28, 1}));
  CHECK(graph->nodes()[1].output == Shape({28, 28, 16}));
  CHECK(graph->nodes()[4].output == Shape({14, 14, 16}));
  CHECK(graph->nodes()[5].output == Shape({14 * 14 * 16}));
  CHECK(VariableNames(*graph) == std::vector<std::string>{"conv1/kernel", "conv1/bias", "bn/gamma",
                                                          "bn/beta", "bn/moving_mean",
                                                          "bn/moving_variance", "fc/kernel",
                                                          "fc/bias", "train/loss"});
  CHECK(graph->variables()[0].shape == Shape({3, 3, 1, 16}));
  CHECK(graph->variables()[0].initializer.has_glorot());
  CHECK(graph->variables()[1].initializer.has_zeros());
  CHECK(graph->variables()[3].trainable);
  CHECK_FALSE(graph->variables()[4].trainable);
  CHECK(graph->variables()[5].initializer.constant().value() == 1.0f);
  CHECK(graph->variables()[graph->loss_variable()].shape == Shape({1}));
  CHECK_FALSE(graph->variables()[graph->loss_variable()].trainable);
  CHECK(graph->nodes()[2].variables == std::vector<int>{2, 3, 4, 5});
  CHECK(graph->loss_node() == 7);
  CHECK(graph->is_classifier());
  CHECK(graph->num_outputs() == 10);
}

TEST_CASE("A graph may branch and join again") {
  const auto graph = BuildText(R"(
      input_shape: [8]
      layers { name: "a" dense { units: 8 } }
      layers { name: "b" inputs: "input" dense { units: 8 no_bias: true } }
      layers { name: "sum" inputs: ["a", "b", "input"] add {} }
      layers { name: "cat" inputs: ["sum", "a"] concatenate {} }
      layers { name: "y" dense { units: 3 } }
      layers { name: "loss" l2_loss {} })");
  REQUIRE(graph.ok());
  CHECK(graph->nodes()[3].inputs == std::vector<int>{1, 2, 0});
  CHECK(graph->nodes()[4].output == Shape({16}));
  CHECK_FALSE(graph->is_classifier());
  CHECK(graph->num_outputs() == 3);
  CHECK(VariableNames(*graph) == std::vector<std::string>{"a/kernel", "a/bias", "b/kernel",
                                                          "y/kernel", "y/bias", "train/loss"});
}

TEST_CASE("An input that does not exist names the one that was meant") {
  const std::string error = BuildError(R"(
      input_shape: 4
      layers { name: "hidden" dense { units: 2 } }
      layers { name: "loss" inputs: "hiden" softmax_cross_entropy {} })");
  CHECK_THAT(error, Contains("layer \"loss\" (softmax_cross_entropy)"));
  CHECK_THAT(error, Contains("no layer \"hiden\"; did you mean \"hidden\"?"));
  CHECK_THAT(BuildError(R"(
      input_shape: 4
      layers { name: "a" inputs: "b" relu {} }
      layers { name: "b" relu {} })"),
             Contains("\"b\" does not stand ahead of it"));
}

TEST_CASE("A layer whose output nobody takes is refused") {
  CHECK_THAT(BuildError(R"(
      input_shape: 4
      layers { name: "a" dense { units: 2 } }
      layers { name: "b" inputs: "input" dense { units: 2 } })" +
                        std::string(kLoss)),
             Contains("layer \"a\": no layer takes its output"));
  CHECK_THAT(BuildError(R"(
      input_shape: 4
      layers { name: "y" dense { units: 2 } }
      layers { name: "loss" softmax_cross_entropy {} }
      layers { name: "rest" inputs: "y" relu {} })"),
             Contains("layer \"rest\": no layer takes its output"));
}

TEST_CASE("There is a loss and nothing follows it") {
  CHECK_THAT(BuildError("input_shape: 4"), Contains("there is no loss"));
  CHECK_THAT(BuildError("input_shape: 4 layers { name: 'a' relu {} }"),
             Contains("there is no loss"));
  CHECK_THAT(BuildError(R"(input_shape: 4
      layers { name: "loss" softmax_cross_entropy {} }
      layers { name: "after" relu {} })"),
             Contains("layer \"after\" (relu): inputs: \"loss\" is the loss"));
}

TEST_CASE("Names are letters, digits and underscores, unique and not reserved") {
  const auto with_name = [](const std::string& name) {
    return "input_shape: 4 layers { name: '" + name + "' dense { units: 2 } }" + kLoss;
  };
  CHECK(BuildText(with_name("Fc_1")).ok());
  for (const std::string& bad : {std::string(), std::string("a/b"), std::string("a b"),
                                 std::string("\\303\\244"), std::string(101, 'x')}) {
    CHECK_THAT(BuildError(with_name(bad)), Contains("letters, digits or '_'"));
  }
  for (const char* reserved : {"train", "input", "optimizer"}) {
    CHECK_THAT(BuildError(with_name(reserved)), Contains("is reserved"));
  }
  CHECK_THAT(BuildError(with_name("loss")), Contains("another layer has it already"));
  CHECK_THAT(BuildError("input_shape: 4 layers { relu {} }"),
             Contains("layer 1 of the file (relu)"));
}

TEST_CASE("State inputs are nodes behind the input, which layers take by name") {
  const auto graph = BuildText(R"(
      input_shape: [9, 4]
      state_inputs { name: "h" units: 3 }
      state_inputs { name: "c" units: 3 }
      layers { name: "steps" dense { units: 2 } }
      layers { name: "lstm" inputs: ["steps", "h", "c"] lstm { units: 3 } }
      layers { name: "loss" softmax_cross_entropy {} })");
  REQUIRE(graph.ok());
  CHECK(graph->num_state_inputs() == 2);
  CHECK(graph->nodes()[2].name == "c");
  CHECK(graph->nodes()[2].output == Shape({3}));
  CHECK(graph->nodes()[3].inputs == std::vector<int>{0});  // without a name: the example
  CHECK(graph->nodes()[4].inputs == std::vector<int>{3, 1, 2});
}

TEST_CASE(
    "State inputs that no layer takes, or without a size or a name of their own, are refused") {
  const auto with_states = [](const std::string& states) {
    return "input_shape: [9, 4] " + states +
           " layers { name: 'gru' inputs: ['input', 'h'] gru { units: 3 } }" + kLoss;
  };
  CHECK(BuildText(with_states("state_inputs { name: 'h' units: 3 }")).ok());
  CHECK_THAT(BuildError(with_states("state_inputs { name: 'h' units: 3 } "
                                    "state_inputs { name: 'c' units: 3 }")),
             Contains("state_inputs: no layer takes \"c\""));
  CHECK_THAT(BuildError(with_states("state_inputs { name: 'h' units: 4 }")),
             Contains("expected an initial state [3]"));
  CHECK_THAT(BuildError(with_states("state_inputs { name: 'h' }")),
             Contains("state_inputs[0]: units: "));
  CHECK_THAT(BuildError(with_states("state_inputs { name: 'h' units: 3 } "
                                    "state_inputs { name: 'h' units: 3 }")),
             Contains("state_inputs[1]: name: another layer has it already"));
  CHECK_THAT(BuildError(with_states("state_inputs { name: 'H' units: 3 }")),
             Contains("did you mean \"H\"?"));
  CHECK_THAT(BuildError(with_states("state_inputs { name: 'input' units: 3 }")),
             Contains("is reserved"));
}

TEST_CASE("The shape of an example is checked") {
  for (const char* shape :
       {"", "0", "[4, -1]", "[1,1,1,1,1,1,1,1]", "[4000000000, 4000000000, 4000000000]"}) {
    const std::string field = *shape == '\0' ? "" : std::string("input_shape: ") + shape;
    CHECK_THAT(BuildError(field + kLoss), Contains("input_shape: "));
  }
}

}  // namespace
}  // namespace lockstep
