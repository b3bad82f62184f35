#include "chief/plan/job_changes.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace lockstep::chief {
namespace {

using google::protobuf::TextFormat;
using google::protobuf::util::MessageDifferencer;

// What the chief sets in a job and a version before did not is no change.
void ForgetSet(const JobDef& before, JobDef* now) {
  if (before.data().text().characters().empty() && now->data().has_text()) {
    now->mutable_data()->mutable_text()->clear_characters();
  }
  if (before.data().csv().columns().empty() && now->data().has_csv()) {
    now->mutable_data()->mutable_csv()->clear_columns();
  }
}

void ForgetSet(const ModelDef&, ModelDef*) {}

// The differencer's lines are "modified: max_steps: 10 -> 20", "added: name: "x"", "deleted: ...".
template <typename Message>
void AddChanges(absl::string_view where, absl::string_view text, Message now,
                std::vector<std::string>* changes) {
  if (text.empty()) return;
  Message before;
  TextFormat::Parser parser;
  parser.AllowUnknownField(true);  // of another version
  if (!parser.ParseFromString(std::string(text), &before)) return;
  ForgetSet(before, &now);
  std::string report;
  MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&report);
  if (differencer.Compare(before, now)) return;
  for (absl::string_view line : absl::StrSplit(report, '\n', absl::SkipEmpty())) {
    changes->push_back(absl::StrCat(where, absl::StrReplaceAll(line, {{"modified: ", ""}})));
  }
}

}  // namespace

std::string DescribeJobChanges(absl::string_view job_text, absl::string_view model_text,
                               const JobDef& job, const ModelDef& model) {
  std::vector<std::string> changes;
  AddChanges("", job_text, job, &changes);
  AddChanges("model: ", model_text, model, &changes);
  return absl::StrJoin(changes, "; ");
}

}  // namespace lockstep::chief
