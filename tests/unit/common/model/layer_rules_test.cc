// One wrong number per kind of layer: what the model's author is told.
#include "tests/unit/common/model/model_text.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

// A model with this layer between an input of this shape and a loss.
std::string With(const std::string& input_shape, const std::string& layer) {
  return "input_shape: " + input_shape + " layers { name: 'x' " + layer + " }" +
         " layers { name: 'flat' flatten {} } layers { name: 'loss' softmax_cross_entropy {} }";
}

Shape OutputOf(const std::string& input_shape, const std::string& layer) {
  const auto graph = BuildText(With(input_shape, layer));
  REQUIRE(graph.ok());
  return graph->nodes()[1].output;
}

TEST_CASE("A dense layer on an image asks for a flatten layer") {
  const std::string error = BuildError(With("[4, 4, 2]", "dense { units: 3 }"));
  CHECK_THAT(error, Contains("layer \"x\" (dense): expected an input of rank 1, got [4,4,2]"));
  CHECK_THAT(error, Contains("flatten first"));
}

TEST_CASE("A dense layer multiplies each step of a sequence by one kernel") {
  const auto graph = BuildText(With("[9, 4]", "dense { units: 3 }"));
  REQUIRE(graph.ok());
  CHECK(graph->nodes()[1].output == Shape({9, 3}));
  CHECK(graph->variables()[0].shape == Shape({4, 3}));
}

TEST_CASE("Only an lstm has a bias whose forget gate could begin at 1") {
  const char* const given = "bias_initializer { unit_forget_bias {} }";
  CHECK(BuildText(With("[9, 4]", absl::StrCat("lstm { units: 4 ", given, " }"))).ok());
  for (const std::string& layer :
       {absl::StrCat("gru { units: 4 ", given, " }"),
        absl::StrCat("dense { units: 4 ", given, " }"),
        std::string("lstm { units: 4 kernel_initializer { unit_forget_bias {} } }")}) {
    CAPTURE(layer);
    CHECK_THAT(BuildError(With("[9, 4]", layer)),
               Contains("_initializer.unit_forget_bias: only the bias of an lstm") &&
                   Contains("Remedy: "));
  }
}

TEST_CASE("An example has no more elements than can be counted with") {
  CHECK_THAT(BuildError(With("[1000000000000000000]", "dense { units: 1 }")),
             Contains("input_shape: ") && Contains("has more than 2147483647 elements"));
}

TEST_CASE("Recurrent layers have Keras's variables, and give the last step or all of them") {
  const auto lstm = BuildText(With("[9, 4]", "lstm { units: 3 }"));
  REQUIRE(lstm.ok());
  CHECK(lstm->nodes()[1].output == Shape({3}));
  CHECK(lstm->variables()[0].name == "x/kernel");
  CHECK(lstm->variables()[0].shape == Shape({4, 12}));
  CHECK(lstm->variables()[0].initializer.has_glorot());
  CHECK(lstm->variables()[1].name == "x/recurrent_kernel");
  CHECK(lstm->variables()[1].shape == Shape({3, 12}));
  CHECK(lstm->variables()[1].initializer.has_orthogonal());
  CHECK(lstm->variables()[2].name == "x/bias");
  CHECK(lstm->variables()[2].shape == Shape({12}));
  CHECK(lstm->variables()[2].initializer.has_unit_forget_bias());
  const auto gru = BuildText(With("[9, 4]", "gru { units: 3 return_sequences: true }"));
  REQUIRE(gru.ok());
  CHECK(gru->nodes()[1].output == Shape({9, 3}));
  CHECK(gru->variables()[0].shape == Shape({4, 9}));
  CHECK(gru->variables()[1].shape == Shape({3, 9}));
  CHECK(gru->variables()[2].shape == Shape({2, 9}));
  CHECK(gru->variables()[2].initializer.has_zeros());
  const auto bare = BuildText(
      With("[9, 4]", "gru { units: 3 no_bias: true recurrent_initializer { glorot {} } }"));
  REQUIRE(bare.ok());
  CHECK(bare->variables().size() == 3);  // with the loss
  CHECK(bare->variables()[1].initializer.has_glorot());
}

TEST_CASE("Recurrent layers refuse what is no sequence, and states of another size") {
  CHECK_THAT(BuildError(With("[9]", "lstm { units: 3 }")),
             Contains("layer \"x\" (lstm): expected a sequence [time,features], got an input [9]"));
  CHECK_THAT(BuildError(With("[9, 4]", "gru {}")), Contains("units: expected 1 to"));
  CHECK_THAT(BuildError(With("[9, 4]", "lstm { units: 2147483647 }")), Contains("more than"));
  CHECK_THAT(BuildError(With("[9, 4]", "inputs: ['input', 'input'] lstm { units: 3 }")),
             Contains("the initial states h and c or none, got 2 inputs"));
  CHECK_THAT(BuildError(With("[9, 4]", "inputs: ['input', 'input'] gru { units: 3 }")),
             Contains("expected an initial state [3], one number for each unit, got [9,4]"));
  CHECK_THAT(
      BuildError(With("[9, 4]", "gru { units: 3 bias_initializer { constant { value: nan } } }")),
      Contains("bias_initializer.constant.value"));
}

TEST_CASE("A classifier of sequences has a label for each time step") {
  const std::string loss = " layers { name: 'loss' softmax_cross_entropy {} }";
  const auto sequences = BuildText(
      "input_shape: 7 layers { name: 'e' embedding { rows: 5 dim: 4 combiner: SEQUENCE } }" + loss);
  REQUIRE(sequences.ok());
  CHECK(sequences->nodes()[1].output == Shape({7, 4}));
  CHECK(sequences->num_outputs() == 4);
  CHECK(sequences->labels_per_example() == 7);
  const auto examples = BuildText(With("[9]", "dense { units: 3 }"));
  REQUIRE(examples.ok());
  CHECK(examples->labels_per_example() == 1);
  CHECK_THAT(BuildError("input_shape: [7, 1]" + loss), Contains("expected at least 2 scores"));
  CHECK_THAT(BuildError("input_shape: [7, 2] layers { name: 'loss' l2_loss {} }"),
             Contains("expected an input of rank 1, got [7,2]"));
}

TEST_CASE("A convolution on an image without channels says how to write them") {
  CHECK_THAT(BuildError(With("[28, 28]", "conv2d { filters: 3 kernel: 3 }")),
             Contains("got [28,28]. Remedy: write the channels too, input_shape: [28,28,1]"));
}

TEST_CASE("Windows and strides are one number, or height and width") {
  CHECK(OutputOf("[9, 7, 1]", "conv2d { filters: 2 kernel: [3, 1] strides: 2 }") ==
        Shape({5, 4, 2}));
  CHECK(OutputOf("[9, 7, 1]", "conv2d { filters: 2 kernel: 3 strides: 2 padding: VALID }") ==
        Shape({4, 3, 2}));
  CHECK(OutputOf("[9, 7, 3]", "max_pool { window: [2, 3] }") == Shape({5, 3, 3}));
  CHECK(OutputOf("[9, 7, 3]", "average_pool { window: 3 strides: [1, 2] padding: VALID }") ==
        Shape({7, 3, 3}));
  CHECK_THAT(BuildError(With("[9, 7, 1]", "conv2d { filters: 2 kernel: [3, 3, 3] }")),
             Contains("kernel: expected one number or height and width, got 3 numbers"));
}

TEST_CASE("Defaults are filled in where the graph is used") {
  const auto graph = BuildText(With("[9, 7, 1]", "max_pool { window: 3 }"));
  REQUIRE(graph.ok());
  const Pool& pool = graph->nodes()[1].layer.max_pool();
  CHECK(pool.window_size() == 2);
  CHECK(pool.strides_size() == 2);
  CHECK(pool.strides(1) == 3);
  const auto norm = BuildText(With("[9]", "batch_norm {}"));
  REQUIRE(norm.ok());
  CHECK(norm->nodes()[1].layer.batch_norm().momentum() == 0.99f);
  CHECK(norm->nodes()[1].layer.batch_norm().epsilon() == 0.001f);
  const auto dense =
      BuildText(With("[9]", "dense { units: 2 kernel_initializer { truncated_normal {} } }"));
  REQUIRE(dense.ok());
  CHECK(dense->variables()[0].initializer.truncated_normal().stddev() == 0.1f);
}

TEST_CASE("Numbers out of range are refused with the field's name") {
  struct Case {
    const char* layer;
    const char* error;
  };
  for (const Case& c : {
           Case{"conv2d { kernel: 3 }", "filters: expected 1 to"},
           Case{"conv2d { filters: 3 }", "kernel: expected one number"},
           Case{"conv2d { filters: 3 kernel: 0 }", "kernel: expected 1 to"},
           Case{"conv2d { filters: 3 kernel: 3 strides: -1 }", "strides: expected 1 to"},
           Case{"conv2d { filters: 3 kernel: 9223372036854775807 }", "kernel: expected 1 to"},
           Case{"conv2d { filters: 2147483647 kernel: 2147483647 }", "more than 2147483647"},
           Case{"conv2d { filters: 3 kernel: 9 padding: VALID }", "larger than the input [8,8,4]"},
           Case{"max_pool {}", "window: expected one number"},
           Case{"max_pool { window: [2, 9] padding: VALID }", "larger than the input [8,8,4]"},
           Case{"batch_norm { momentum: 1 }", "momentum: expected a number between 0 and 1"},
           Case{"batch_norm { epsilon: -1 }", "epsilon: expected a positive number"},
           Case{"dropout { rate: 1 }", "rate: expected a number from 0 to below 1, got 1"},
           Case{"dropout { rate: -0.5 }", "rate: expected"},
           Case{"dropout { rate: nan }", "rate: expected"},
           Case{"conv2d { filters: 1 kernel: 1 kernel_initializer { constant { value: inf } } }",
                "kernel_initializer.constant.value: expected a finite number"},
           Case{"conv2d { filters: 1 kernel: 1 bias_initializer { truncated_normal "
                "{ stddev: -1 } } }",
                "bias_initializer.truncated_normal.stddev: expected a positive number"},
           Case{"columns {}", "expected columns within the 4 of the input [8,8,4], at least one"},
           Case{"columns { first: -1 count: 2 }", "got first -1 and count 2"},
           Case{"columns { first: 2 count: 3 }", "got first 2 and count 3"},
           Case{"columns { first: 1 count: 9223372036854775807 }", "got first 1 and count"},
           Case{"embedding { rows: 5 dim: 2 }", "row indices [n], got an input [8,8,4]. Remedy"},
           Case{"synthetic {}", "elements: expected 1 to 2147483647, got 0"},
           Case{"synthetic { elements: 3 variables: 10001 }", "variables: expected 1 to 10000"},
           Case{"synthetic { elements: 3 variables: -1 }",
                "variables: expected 1 to 10000, got -1"},
           Case{"synthetic { elements: 3 release_every_us: -1 }",
                "release_every_us: expected 0 to"},
           Case{"synthetic { elements: 3 rows: 4 }", "expected row indices [n], got an input"},
           Case{"frozen: true relu {}", "frozen: this layer has no variables"},
           Case{"add {}", "inputs: expected 2 or more, got 1"},
           Case{"concatenate {}", "inputs: expected 2 or more, got 1"},
           Case{"inputs: ['input', 'input'] relu {}", "inputs: expected 1, got 2"},
           Case{"", "one of dense, conv2d, max_pool"},
           Case{"custom { type: 'warp' parameters { name: 'a' number: 1 } }",
                "custom.type: no layer is registered as \"warp\". Remedy: use one of dense, "},
       }) {
    CAPTURE(c.layer);
    CHECK_THAT(BuildError(With("[8, 8, 4]", c.layer)), Contains(c.error));
  }
  CHECK_THAT(BuildError(With("[9]", "dense {}")), Contains("units: expected 1 to"));
  CHECK_THAT(BuildError(With("[100000]", "dense { units: 100000 }")),
             Contains("the kernel of shape [100000,100000] has more than"));
}

TEST_CASE("Columns are taken from the last dimension") {
  CHECK(OutputOf("[9, 7, 5]", "columns { first: 1 count: 3 }") == Shape({9, 7, 3}));
  CHECK(OutputOf("[5]", "columns { first: 3 count: 2 }") == Shape({2}));
}

TEST_CASE("An embedding has a sparse table and puts its rows side by side, or adds them") {
  CHECK(OutputOf("[3]", "embedding { rows: 9 dim: 4 }") == Shape({12}));
  CHECK(OutputOf("[3]", "embedding { rows: 9 dim: 4 combiner: SUM }") == Shape({4}));
  const auto graph = BuildText(With("[3]", "embedding { rows: 9 dim: 16 }"));
  REQUIRE(graph.ok());
  const ModelVariable& table = graph->variables()[0];
  CHECK(table.name == "x/table");
  CHECK(table.shape == Shape({9, 16}));
  CHECK(table.sparse);
  CHECK(table.trainable);
  CHECK(table.initializer.truncated_normal().stddev() == 0.25f);
  CHECK_FALSE(graph->variables()[graph->loss_variable()].sparse);
  const auto zeros =
      BuildText(With("[3]", "embedding { rows: 9 dim: 2 initializer { zeros {} } }"));
  REQUIRE(zeros.ok());
  CHECK(zeros->variables()[0].initializer.has_zeros());
}

TEST_CASE("A table that cannot be is refused with the field's name") {
  const auto error = [](const std::string& layer) { return BuildError(With("[3]", layer)); };
  CHECK_THAT(error("embedding { dim: 2 }"), Contains("rows: expected 1 to 16777216, got 0"));
  CHECK_THAT(error("embedding { rows: 16777217 dim: 2 }"),
             Contains("rows: expected 1 to 16777216"));
  CHECK_THAT(error("embedding { rows: 2 }"), Contains("dim: expected 1 to"));
  CHECK_THAT(error("embedding { rows: 16777216 dim: 128 }"),
             Contains("the table of shape [16777216,128] has more than"));
  CHECK_THAT(error("embedding { rows: 1 dim: 2147483647 }"), Contains("the output of shape"));
  CHECK_THAT(error("embedding { rows: 2 dim: 2 initializer { constant { value: nan } } }"),
             Contains("initializer.constant.value: expected a finite number"));
  ModelDef def = ModelFromText(With("[3]", "embedding { rows: 2 dim: 2 }"));
  def.mutable_layers(0)->mutable_embedding()->set_combiner(static_cast<Embedding::Combiner>(7));
  CHECK_THAT(std::string(ModelGraph::Build(def).status().message()),
             Contains("combiner: expected CONCATENATE, SUM or SEQUENCE, got 7"));
}

TEST_CASE("A synthetic layer has as many variables of one size as it says, one by default") {
  CHECK(OutputOf("[3, 2]", "synthetic { elements: 7 }") == Shape({3, 2}));
  const auto one = BuildText(With("[3]", "synthetic { elements: 7 }"));
  REQUIRE(one.ok());
  CHECK(one->nodes()[1].variables == std::vector<int>{0});
  const auto three = BuildText(With("[3]", "synthetic { variables: 3 elements: 5 }"));
  REQUIRE(three.ok());
  CHECK(three->nodes()[1].variables == std::vector<int>{0, 1, 2});
  const ModelVariable& last = three->variables()[2];
  CHECK(last.name == "x/value_2");
  CHECK(last.shape == Shape({5}));
  CHECK(last.trainable);
  CHECK(last.initializer.has_zeros());
  CHECK_FALSE(last.sparse);
}

TEST_CASE("A synthetic layer's variables may be tables") {
  const auto graph = BuildText(With("[3]", "synthetic { variables: 2 elements: 5 rows: 7 }"));
  REQUIRE(graph.ok());
  for (int i = 0; i < 2; ++i) {
    CHECK(graph->variables()[i].sparse);
    CHECK(graph->variables()[i].shape == Shape({7, 5}));
  }
  CHECK_THAT(BuildError(With("[3]", "synthetic { elements: 5 rows: -1 }")),
             Contains("rows: expected 1 to 16777216, got -1"));
  CHECK_THAT(BuildError(With("[3]", "synthetic { elements: 1000 rows: 10000000 }")),
             Contains("the table of shape [10000000,1000] has more than"));
}

TEST_CASE("Branches that join must fit") {
  const auto join = [](const std::string& how) {
    return BuildError(R"(input_shape: [4, 4, 2]
        layers { name: "p" max_pool { window: 2 } }
        layers { name: "x" inputs: ["p", "input"] )" +
                      how + "}");
  };
  CHECK_THAT(join("add {}"), Contains("expected one shape, got [2,2,2] and [4,4,2]"));
  CHECK_THAT(join("concatenate {}"), Contains("differ in the last dimension only"));
}

TEST_CASE("A loss takes a vector, and a classifier at least two classes") {
  CHECK_THAT(BuildError("input_shape: [2, 2] layers { name: 'l' l2_loss {} }"),
             Contains("flatten first"));
  CHECK_THAT(BuildError("input_shape: 1 layers { name: 'l' softmax_cross_entropy {} }"),
             Contains("at least 2 scores, got [1]"));
  CHECK(BuildText("input_shape: 1 layers { name: 'l' l2_loss {} }").ok());
}

TEST_CASE("A padding that is no padding is refused") {
  // Not writable in a file, but a message from a peer may hold it.
  ModelDef def = ModelFromText(With("[8, 8, 4]", "max_pool { window: 2 }"));
  def.mutable_layers(0)->mutable_max_pool()->set_padding(static_cast<Padding>(7));
  const auto graph = ModelGraph::Build(def);
  REQUIRE_FALSE(graph.ok());
  CHECK_THAT(std::string(graph.status().message()), Contains("padding: expected SAME or VALID"));
}

}  // namespace
}  // namespace lockstep
