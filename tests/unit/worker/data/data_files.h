// Small data sets for tests of the data path.
#pragma once

#include <string>

#include "proto/job.pb.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/dataset/file_bytes.h"
#include "worker/data/pipeline.h"

namespace lockstep::worker::test {

// `train` 4x4 images whose pixels all have the image's number (below 256), labelled with its last
// decimal digit; `test` ones likewise.
class NumberedImages {
 public:
  explicit NumberedImages(uint32_t train, uint32_t test = 1) {
    auto* idx = data.mutable_idx();
    idx->add_train_images(folder.Write("train-images", Images(train)));
    idx->add_train_labels(
        folder.Write("train-labels", lockstep::test::CountingIdx({train}, /*modulus=*/10)));
    idx->set_test_images(folder.Write("test-images", Images(test)));
    idx->set_test_labels(
        folder.Write("test-labels", lockstep::test::CountingIdx({test}, /*modulus=*/10)));
  }

  static ExampleSpec Spec() {
    return {.input_shape = Shape({4, 4, 1}), .classifier = true, .num_outputs = 10};
  }

  lockstep::test::TemporaryFolder folder;
  DataDef data;

 private:
  static std::string Images(uint32_t count) {
    std::string pixels;
    for (uint32_t i = 0; i < count; ++i) pixels.append(16, static_cast<char>(i));
    return lockstep::test::Idx(0x08, {count, 4, 4}, pixels);
  }
};

}  // namespace lockstep::worker::test
