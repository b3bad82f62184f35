#include "tests/bench/digits_data.h"

#include <filesystem>

#include "absl/strings/str_cat.h"

namespace lockstep::bench {

std::string DigitsData() {
  const std::string digits = std::filesystem::current_path().string() + "/deploy/data/digits/";
  return absl::StrCat("data { idx { train_images: '", digits,
                      "train-images.idx.gz' train_labels: '", digits,
                      "train-labels.idx.gz' } scale: 0.0625 }\n");
}

}  // namespace lockstep::bench
