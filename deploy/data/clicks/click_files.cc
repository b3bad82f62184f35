#include "deploy/data/clicks/click_files.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/fs/atomic_file.h"
#include "common/fs/path.h"
#include "deploy/data/clicks/click_model.h"

namespace lockstep::deploy {
namespace {

void AppendLine(const Click& click, std::string* text) {
  for (int64_t row : click.rows) absl::StrAppend(text, row, ",");
  for (double number : click.numbers) absl::StrAppend(text, number, ",");
  absl::StrAppend(text, click.clicked ? 1 : 0, "\n");
}

// Examples [begin, end), handed to `each` too.
template <typename Each>
absl::Status WriteExamples(const ClickModel& model, int64_t begin, int64_t end,
                           const std::string& path, const Each& each) {
  std::string text = absl::StrCat(absl::StrJoin(ClickModel::ColumnNames(), ","), ",click\n");
  for (int64_t example = begin; example < end; ++example) {
    const Click click = model.At(example);
    AppendLine(click, &text);
    each(click);
  }
  return WriteFileAtomically(path, text);
}

}  // namespace

absl::StatusOr<ClickFigures> WriteClickFiles(const std::string& folder,
                                             const ClickFilesOptions& options) {
  const ClickModel model(options.seed);
  LOCKSTEP_RETURN_IF_ERROR(
      WriteExamples(model, 0, options.train, JoinPath(folder, "train.csv"), [](const Click&) {}));
  double clicked = 0;
  double right = 0;
  double loss = 0;
  LOCKSTEP_RETURN_IF_ERROR(WriteExamples(model, options.train, options.train + options.test,
                                         JoinPath(folder, "test.csv"), [&](const Click& click) {
                                           clicked += click.clicked;
                                           right += (click.probability > 0.5) == click.clicked;
                                           loss -= std::log(click.clicked ? click.probability
                                                                          : 1 - click.probability);
                                         }));
  const double examples = static_cast<double>(options.test);
  const double share = clicked / examples;
  return ClickFigures{std::max(share, 1 - share), right / examples, loss / examples};
}

}  // namespace lockstep::deploy
