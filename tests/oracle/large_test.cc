// TensorFlow's answers, whichever way the gradients of a large variable take to the ps.
#include <catch2/catch.hpp>

#include "tests/oracle/recorded_scripts.h"
#include "tests/oracle/replay_large.h"

namespace lockstep::oracle {
namespace {

std::vector<Script> DenseScripts() {
  std::vector<Script> scripts = RecordedScripts("training");
  std::erase_if(scripts, [](const Script& script) {
    return script.content.at("sparse") || script.content.at("dtype") != "float32";
  });
  return scripts;
}

// Steps that were compared.
int ReplayAll(GradientPath path) {
  int num_steps = 0;
  for (const Script& script : DenseScripts()) {
    const absl::StatusOr<LargeReplay> replay = ReplayLarge(script.content, path);
    INFO(script.place);
    if (!replay.ok()) FAIL(replay.status());
    for (const Difference& differs : replay->comparison.differences()) {
      FAIL_CHECK("step " << differs.entry << ", " << differs.what << ": expected "
                         << differs.expected << ", got " << differs.got);
    }
    num_steps += replay->num_steps;
  }
  return num_steps;
}

TEST_CASE("a large variable trains as TensorFlow's does: gradients in messages") {
  CHECK(ReplayAll(GradientPath::kMessages) >= 150);
}

TEST_CASE("a large variable trains as TensorFlow's does: gradients in shared memory") {
  CHECK(ReplayAll(GradientPath::kSharedMemory) >= 150);
}

TEST_CASE("a large variable trains as TensorFlow's does: gradients in early chunks") {
  CHECK(ReplayAll(GradientPath::kEarlyChunks) >= 40);
}

TEST_CASE("a large variable that TensorFlow has otherwise is found, on each way") {
  for (const GradientPath path :
       {GradientPath::kMessages, GradientPath::kSharedMemory, GradientPath::kEarlyChunks}) {
    Script script = DenseScripts().front();
    for (nlohmann::json& entry : script.content["log"]) {
      if (entry.at("op") == "apply") Change(&entry["variable"], 1e-4);
    }
    const absl::StatusOr<LargeReplay> replay = ReplayLarge(script.content, path);
    REQUIRE(replay.ok());
    CHECK_FALSE(replay->comparison.differences().empty());
  }
}

}  // namespace
}  // namespace lockstep::oracle
