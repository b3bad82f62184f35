// Our checkpoints, read by the safetensors library and used by NumPy.
#include <catch2/catch.hpp>
#include <string>

#include "tests/integration/cluster.h"
#include "tests/integration/training_run.h"
#include "tests/interop/python.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {
namespace {

// A layer of every kind that a classifier has.
constexpr char kAllKinds[] = R"(
  input_shape: [8, 8, 1]
  layers { name: "conv1" conv2d { filters: 8 kernel: 3 no_bias: true } }
  layers { name: "norm" batch_norm { momentum: 0.9 } }
  layers { name: "relu" relu {} }
  layers { name: "conv2" conv2d { filters: 8 kernel: [3, 2] } }
  layers { name: "sum" inputs: ["relu", "conv2"] add {} }
  layers { name: "strided" conv2d { filters: 4 kernel: 3 strides: 2 } }
  layers { name: "squashed" tanh {} }
  layers { name: "mean" inputs: "sum" average_pool { window: 3 strides: 2 } }
  layers { name: "max" inputs: "sum" max_pool { window: 2 } }
  layers { name: "both" inputs: ["squashed", "mean", "max"] concatenate {} }
  layers { name: "valid" conv2d { filters: 8 kernel: 2 padding: VALID } }
  layers { name: "flat" flatten {} }
  layers { name: "drop" dropout { rate: 0.1 } }
  layers { name: "hidden" dense { units: 16 no_bias: true } }
  layers { name: "gate" sigmoid {} }
  layers { name: "scores" dense { units: 10 } }
  layers { name: "loss" softmax_cross_entropy {} })";

TEST_CASE("NumPy finds the accuracy of the run in its last checkpoint") {
  const TemporaryFolder saved;
  Cluster cluster(2, 2);
  cluster.StartAll(
      {.max_steps = 100, .checkpoint = "folder: '" + saved.path() + "'", .model = kAllKinds});
  const nlohmann::json summary = Finish(cluster);
  const nlohmann::json numpy = RunPythonForJson("numpy_forward.py", {SourceRoot(), saved.path()});
  const double examples = numpy["examples"];
  CHECK(examples == 359);
  CHECK(numpy["correct"] > examples / 2);
  CHECK(numpy["correct"].get<double>() / examples == summary["test_accuracy"].get<double>());
  CHECK(numpy["loss"].get<double>() == Approx(summary["test_loss"].get<double>()).epsilon(1e-5));
}

TEST_CASE("our safetensors files are those of the format's own library, bit for bit") {
  RunPython("compare_safetensors.py", {Binary("tests/interop/copy_safetensors")});
}

}  // namespace
}  // namespace lockstep::test
