// The batches that data.transform makes, dealt to the towers.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/transform_step.h"
#include "worker/data/example_source.h"
#include "worker/data/transform/element_stream.h"
#include "worker/data/transform/make_stream.h"

namespace lockstep::worker {

// Step k gives tower i of D batch k·D + i; a last group of fewer than D batches is left out. An
// earlier step than the last one, or a later one, is reached by reading indices, never data.
class TransformedSource final : public ExampleSource {
 public:
  // Errors as CountGroups.
  static absl::StatusOr<std::unique_ptr<TransformedSource>> Create(std::vector<TransformStep> steps,
                                                                   int64_t num_examples,
                                                                   const StreamSeeds& seeds,
                                                                   int64_t towers);

  bool Read(int64_t step, const std::atomic<bool>& cancelled,
            std::vector<Element>* towers) override;
  int64_t last_step() const override { return last_step_; }

 private:
  TransformedSource(std::vector<TransformStep> steps, int64_t num_examples,
                    const StreamSeeds& seeds, int64_t last_step);
  void ReadGroup(std::vector<Element>* towers);

  const std::vector<TransformStep> steps_;
  const int64_t num_examples_;
  const StreamSeeds seeds_;
  const int64_t last_step_;
  std::unique_ptr<ElementStream> stream_;
  int64_t next_step_ = 0;  // that the stream is at
};

}  // namespace lockstep::worker
