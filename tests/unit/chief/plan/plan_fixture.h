// A job on disk that is planned.
#pragma once

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "chief/plan/messages.h"
#include "chief/plan/plan.h"
#include "common/checkpoint/checkpoint.h"
#include "common/tensor/tensor.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::chief {

inline constexpr char kJob[] = R"(
  model: "model.textproto"
  data { csv { train: "train.csv" test: "test.csv" label_column: "label" } }
  global_batch: 4
  max_steps: 10
  optimizer { momentum { momentum: 0.9 } learning_rate { base: 0.5 } }
  sync { replicas_to_aggregate: 1 }
  checkpoint { folder: "ckpt" }
)";

inline constexpr char kModel[] = R"(
  input_shape: [2]
  layers { name: "fc" dense { units: 3 } }
  layers { name: "loss" softmax_cross_entropy {} }
)";

// A job on disk, with seven training examples and two to test on.
struct Fixture {
  Fixture() {
    Write(kJob);
    folder.Write("model.textproto", kModel);
    folder.Write("train.csv", absl::StrCat("a,b,label\n", "1,2,0\n1,2,1\n1,2,2\n1,2,0\n",
                                           "1,2,1\n1,2,2\n1,2,0\n"));
    folder.Write("test.csv", "a,b,label\n1,2,0\n1,2,1\n");
  }
  void Write(absl::string_view job) { folder.Write("job.textproto", std::string(job)); }
  absl::StatusOr<JobPlan> Make(const StartChoice& start = {}) {
    return MakePlan(folder.Path("job.textproto"), cluster, start);
  }
  absl::Status Fail(const std::string& from, const std::string& to, const StartChoice& start = {}) {
    Write(absl::StrReplaceAll(kJob, {{from, to}}));
    return Make(start).status();
  }

  test::TemporaryFolder folder;
  ClusterSpec cluster{.ps = {"127.0.0.1:1", "127.0.0.1:2"},
                      .workers = {"127.0.0.1:3", "127.0.0.1:4"},
                      .chief = "127.0.0.1:5"};
};

// A checkpoint as the job itself would write it.
inline void WriteCheckpoint(const JobPlan& plan, const std::string& root, int64_t step,
                            Epoch epoch = Epoch(3), bool is_finite = true) {
  Manifest manifest = ToManifest(plan, epoch, plan.origin);
  manifest.step = step;
  std::vector<Tensor> values;
  std::vector<NamedTensor> tensors;
  values.reserve(plan.placement.variables_size());
  for (const VariableSpec& variable : plan.placement.variables()) {
    values.emplace_back(DType::kFloat32,
                        Shape({variable.dims().data(), static_cast<size_t>(variable.dims_size())}));
    tensors.push_back({variable.name(), values.back().view()});
    if (!is_finite) values.back().as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  }
  const auto file = WriteShard(CheckpointFolder(root, step), 0, 1, tensors);
  REQUIRE(file.ok());
  manifest.shards = {*file};
  REQUIRE(CommitCheckpoint(root, manifest, 3).ok());
}

inline bool Mentions(const absl::Status& status, absl::string_view text) {
  INFO(status.ToString());
  return absl::StrContains(status.message(), text);
}

}  // namespace lockstep::chief
