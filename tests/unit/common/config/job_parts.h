// A small sound job in parts, of which tests replace some.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/config/job.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::job_parts {

inline constexpr char kModel[] = R"(
    input_shape: [8, 8, 1]
    layers { name: "flat" flatten {} }
    layers { name: "fc" dense { units: 10 } }
    layers { name: "loss" softmax_cross_entropy {} })";

inline const std::string kModelPath = "model: 'model.textproto' ";
inline const std::string kData = "data { idx { train_images: 'a' train_labels: 'b' } } ";
inline const std::string kBatch = "global_batch: 12 ";
inline const std::string kOptimizer = "optimizer { sgd {} learning_rate { base: 0.1 } } ";
inline const std::string kStop = "max_steps: 5 ";

inline absl::StatusOr<LoadedJob> Load(const std::string& job) {
  test::TemporaryFolder folder;
  folder.Write("model.textproto", kModel);
  return LoadJob(folder.Write("job.textproto", job));
}

}  // namespace lockstep::job_parts
