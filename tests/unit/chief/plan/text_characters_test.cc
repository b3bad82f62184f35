#include "chief/plan/text_characters.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/strings/match.h"
#include "chief/plan/job_changes.h"
#include "chief/plan/messages.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/unit/chief/plan/plan_fixture.h"

namespace lockstep::chief {
namespace {

JobDef TextJob(const std::string& characters = "") {
  JobDef job;
  job.mutable_data()->mutable_text()->set_path("/a.txt");
  job.mutable_data()->mutable_text()->set_characters(characters);
  return job;
}

// What SetCharacters sets; an error where it refuses.
std::string Set(const std::string& named, const std::string& occurring,
                const std::string& before = "") {
  // An earlier start may have set others.
  JobDef job = TextJob("xyz");
  const absl::Status status =
      SetCharacters({.occurring = occurring,
                     .named = named,
                     .job_before = before.empty() ? "" : TextJob(before).DebugString()},
                    &job);
  CHECK((status.ok() || absl::IsInvalidArgument(status)));
  return status.ok() ? job.data().text().characters() : std::string(status.message());
}

TEST_CASE("a job that begins knows the characters that it names, or those that occur") {
  CHECK(Set("", "abc") == "abc");
  CHECK(Set("cbax", "abc") == "cbax");
  JobDef other;
  CHECK(SetCharacters({}, &other).ok());
  CHECK_FALSE(other.data().has_text());
}

TEST_CASE("a job that goes on keeps the characters of the training and their numbers") {
  CHECK(Set("", "bd", "abd\n\xff") == "abd\n\xff");
  CHECK(Set("abdc", "abcd", "abd") == "abdc");
  CHECK_THAT(Set("", "abcd", "abd"),
             Catch::Contains("/a.txt: expected characters of the training that the job goes on "
                             "from, \"abd\", got \"c\". Remedy: "));
  CHECK_THAT(Set("abcd", "abcd", "abd"),
             Catch::Contains("data.text.characters: expected those of the training that the job "
                             "goes on from, \"abd\", and others behind them, got \"abcd\""));
  // Of a version that did not write them.
  JobDef job = TextJob();
  REQUIRE(SetCharacters({.occurring = "abc", .job_before = TextJob().DebugString()}, &job).ok());
  CHECK(job.data().text().characters() == "abc");
  CHECK(DescribeJobChanges(TextJob().DebugString(), "", job, ModelDef()).empty());
}

TEST_CASE("a restored job numbers the characters of a changed text as the checkpoint does") {
  Fixture f;
  f.folder.Write("model.textproto", R"(
    input_shape: 2
    layers { name: "e" embedding { rows: 9 dim: 3 combiner: SEQUENCE } }
    layers { name: "scores" dense { units: 9 } }
    layers { name: "loss" softmax_cross_entropy {} }
  )");
  const auto make = [&f](const std::string& text, StartMode mode) {
    f.folder.Write("a.txt", text);
    f.Write(absl::StrReplaceAll(
        kJob, {{R"(csv { train: "train.csv" test: "test.csv" label_column: "label" })",
                R"(text { path: "a.txt" held_out: 0 length: 2 })"}}));
    return f.Make({.mode = mode});
  };
  const absl::StatusOr<JobPlan> first = make("bcdbcdbcd", StartMode::kResume);
  INFO(first.status());
  REQUIRE(first.ok());
  CHECK(first->job.data().text().characters() == "bcd");
  CHECK(ToRegistration(*first).job().data().text().characters() == "bcd");
  WriteCheckpoint(*first, f.folder.Path("ckpt"), 4);
  const absl::StatusOr<JobPlan> fewer = make("cdcdcdcdc", StartMode::kResume);
  REQUIRE(fewer.ok());
  CHECK(fewer->start == GlobalStep(4));
  CHECK(fewer->job.data().text().characters() == "bcd");
  const absl::Status other = make("abcabcabc", StartMode::kResume).status();
  CHECK(Mentions(other, "a.txt: expected characters of the training"));
  CHECK(make("abcabcabc", StartMode::kFresh)->job.data().text().characters() == "abc");
}

}  // namespace
}  // namespace lockstep::chief
