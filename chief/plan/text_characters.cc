#include "chief/plan/text_characters.h"

#include <google/protobuf/text_format.h>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lockstep::chief {
namespace {

// Empty: unknown.
std::string CharactersOf(absl::string_view job_text) {
  JobDef job;
  google::protobuf::TextFormat::Parser parser;
  parser.AllowUnknownField(true);  // of another version
  if (!parser.ParseFromString(std::string(job_text), &job)) return "";
  return job.data().text().characters();
}

}  // namespace

absl::Status SetCharacters(const TextCharacters& characters, JobDef* job) {
  if (!job->data().has_text()) return absl::OkStatus();
  TextFile* const text = job->mutable_data()->mutable_text();
  const std::string before = CharactersOf(characters.job_before);
  text->set_characters(!characters.named.empty() ? characters.named
                       : !before.empty()         ? before
                                                 : characters.occurring);
  const std::string& known = text->characters();
  if (!absl::StartsWith(known, before)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data.text.characters: expected those of the training that the job goes on from, \"",
        absl::CHexEscape(before), "\", and others behind them, got \"", absl::CHexEscape(known),
        "\". Remedy: leave it out, or end all processes and start with --fresh"));
  }
  for (const char& character : characters.occurring) {
    if (absl::StrContains(known, character)) continue;
    const bool goes_on = !before.empty();
    return absl::InvalidArgumentError(absl::StrCat(
        text->path(), ": expected characters ",
        goes_on ? "of the training that the job goes on from" : "that data.text.characters names",
        ", \"", absl::CHexEscape(known), "\", got \"", absl::CHexEscape({&character, 1}),
        "\". Remedy: ",
        goes_on ? "remove it from the text, or end all processes and start with --fresh"
                : "add it there, or remove it from the text"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::chief
