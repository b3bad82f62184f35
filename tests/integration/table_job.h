// A job with a table of 60 rows, of which each example reads three.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/integration/cluster.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {

inline constexpr char kTableModel[] = R"(
  input_shape: [4]
  layers { name: "ids" inputs: "input" columns { first: 0 count: 3 } }
  layers { name: "rows" inputs: "ids" embedding { rows: 60 dim: 5 } }
  layers { name: "number" inputs: "input" columns { first: 3 count: 1 } }
  layers { name: "both" inputs: ["rows", "number"] concatenate {} }
  layers { name: "scores" dense { units: 3 } }
  layers { name: "loss" softmax_cross_entropy {} })";

inline std::string TableExamples(int first, int count) {
  std::string csv;
  for (int i = first; i < first + count; ++i) {
    const int a = (7 * i) % 60, b = (11 * i + 3) % 60, c = (13 * i + 1) % 60;
    absl::StrAppend(&csv, a, ",", b, ",", c, ",", i % 4, ".25,", (a + b) % 3, "\n");
  }
  return csv;
}

// Owns its data and checkpoints.
class TableJob {
 public:
  TableJob() {
    folder_.Write("train.csv", TableExamples(0, 240));
    folder_.Write("test.csv", TableExamples(1000, 130));
  }

  JobText Text(const std::string& more = "", int max_steps = 30) const {
    return {.global_batch = 24,
            .max_steps = max_steps,
            .optimizer =
                "adam {} learning_rate { base: 0.02 } clipping { global_norm: 1 } "
                "variable_averages { decay: 0.9 }",
            .checkpoint = "folder: '" + folder_.Path("saved") + "' every_steps: 10 keep_last: 9",
            .evaluation = "every_steps: 10 batch: 16 use_averages: true",
            .data = absl::StrCat("csv { train: '", folder_.Path("train.csv"), "' test: '",
                                 folder_.Path("test.csv"), "' label_column: '4' no_header: true }"),
            .model = kTableModel,
            .more = "seed: 11 " + more};
  }
  std::string Saved(int step) const { return folder_.Path(absl::StrCat("saved/ckpt-", step)); }

 private:
  const TemporaryFolder folder_;
};

}  // namespace lockstep::test
