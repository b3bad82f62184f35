// What a layer of a model puts out, computed by NumPy; its files, read by Python alone.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/integration/cluster.h"
#include "tests/integration/training_run.h"
#include "tests/interop/python.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {
namespace {

constexpr char kAdversaries[] = R"(
  input_shape: [8, 8, 1]
  layers { name: "flat" flatten {} }
  layers { name: "d_hidden" dense { units: 16 } }
  layers { name: "d_relu" relu {} }
  layers { name: "d_logit" dense { units: 1 } }
  layers { name: "d_real_loss" sigmoid_cross_entropy { target: 1 } }
  layers { name: "noise" noise { shape: 6 } }
  layers { name: "g_hidden" dense { units: 12 } }
  layers { name: "g_norm" batch_norm { momentum: 0.9 } }
  layers { name: "g_relu" relu {} }
  layers { name: "g_logits" dense { units: 64 } }
  layers { name: "g_image" sigmoid {} }
  layers { name: "made_hidden" variables_of: "d_hidden" dense { units: 16 } }
  layers { name: "made_relu" relu {} }
  layers { name: "made_logit" variables_of: "d_logit" dense { units: 1 } }
  layers { name: "d_made_loss" sigmoid_cross_entropy { target: 0 } }
  layers { name: "g_loss" inputs: "made_logit" sigmoid_cross_entropy { target: 1 } })";

constexpr char kLosses[] = R"(
  losses {
    name: "generator" loss: "g_loss" trains: "g_"
    optimizer { adam {} learning_rate { base: 0.01 } }
  }
  losses {
    name: "discriminator" loss: "d_real_loss" loss: "d_made_loss" trains: "d_"
    optimizer { adam {} learning_rate { base: 0.01 } }
  })";

TEST_CASE("NumPy makes the same images of the same noise, and Python reads both files of them") {
  const TemporaryFolder saved;
  Cluster cluster(1, 1);
  cluster.StartAll({.global_batch = 24,
                    .max_steps = 60,
                    .losses = kLosses,
                    .checkpoint = "folder: '" + saved.path() + "'",
                    .model = kAdversaries});
  Finish(cluster);
  const TemporaryFolder out;
  const auto predict = [&](const std::string& layer, const std::string& output) {
    const Ended ended = RunToEnd({Binary("worker/predict"), "predict", "--threads=1", "--limit=300",
                                  "--seed=9", "--checkpoint=" + saved.path(), "--layer=" + layer,
                                  absl::StrCat(output, out.path(), "/", layer)},
                                 absl::Seconds(30));
    INFO(ended.output);
    REQUIRE(ended.exit_code == 0);
  };
  predict("noise", "--json=");
  predict("g_image", "--json=");
  predict("g_relu", "--json=");
  const nlohmann::json numpy =
      RunPythonForJson("numpy_generator.py", {SourceRoot(), saved.path(), out.path()});
  // float32 against double: sums of 12 terms.
  CHECK(numpy["g_relu"].get<double>() < 1e-5);
  CHECK(numpy["g_image"].get<double>() < 1e-5);

  // Of the same outputs a picture and data; 0.0625 is the scale of the digits.
  const Ended files = RunToEnd({Binary("worker/predict"), "predict", "--threads=1", "--limit=300",
                                "--seed=9", "--checkpoint=" + saved.path(), "--layer=g_image",
                                "--png=" + out.Path("grid.png"), "--idx=" + out.Path("data.idx")},
                               absl::Seconds(30));
  INFO(files.output);
  REQUIRE(files.exit_code == 0);
  const nlohmann::json read = RunPythonForJson("read_images.py", {out.path(), "0.0625"});
  CHECK(read["images"] == 300);
  CHECK(read["idx"].get<double>() < 1e-6);  // the largest difference from the JSON file
  CHECK(read["png"] == 0);                  // pixels that differ
}

}  // namespace
}  // namespace lockstep::test
