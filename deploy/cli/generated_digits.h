// The results of the generative demo after its job: a picture of generated digits, and the classes
// that a classifier of the real digits assigns to them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace lockstep::deploy {

struct GeneratorOptions {
  std::string predict;     // the program
  std::string script;      // `lockstep`, for commands that are shown
  std::string run_dir;     // of the generator's job: all files go there
  std::string checkpoint;  // of the generator
  std::string layer;       // its output is the images
  uint64_t seed = 0;       // of the noise
};

struct Judgement {
  int64_t images = 0;
  int64_t sure = 0;     // images with a class probability of at least 90 %
  int64_t classes = 0;  // different classes of those
};

// Writes a grid of 100 images, generated.png, and 1,000 as data, generated.idx. Returns the path of
// the grid.
absl::StatusOr<std::string> GenerateImages(const GeneratorOptions& options);
// Classifies the 1,000 images with the classifier of this checkpoint. Call GenerateImages before.
absl::StatusOr<Judgement> JudgeImages(const GeneratorOptions& options,
                                      const std::string& classifier);

// The command that draws other images, ready to be copied.
std::string MoreImagesCommand(const GeneratorOptions& options);

}  // namespace lockstep::deploy
