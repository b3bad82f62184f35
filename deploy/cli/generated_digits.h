// What the demo of a generative model shows once its job is done: a picture of what it generates,
// and what a classifier of the real digits makes of it.
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
  std::string layer;       // that puts out the images
  uint64_t seed = 0;       // of the noise
};

struct Judgement {
  int64_t images = 0;
  int64_t sure = 0;     // of which the classifier is at least 90 % sure
  int64_t classes = 0;  // that it sees in those
};

// Writes a grid of 100 images, generated.png, and 1,000 as data, generated.idx. Returns the path of
// the grid.
absl::StatusOr<std::string> GenerateImages(const GeneratorOptions& options);
// After GenerateImages: what the classifier of this checkpoint makes of the 1,000.
absl::StatusOr<Judgement> JudgeImages(const GeneratorOptions& options,
                                      const std::string& classifier);

// The command that draws other images, ready to be copied.
std::string MoreImagesCommand(const GeneratorOptions& options);

}  // namespace lockstep::deploy
