// The demo as a newcomer runs it: what it reaches, what it writes, and Ctrl-C.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr absl::Duration kEnd = absl::Seconds(20);

std::vector<std::string> Demo(const std::string& run) {
  return {Binary("deploy/cli/demo"), "--bin_dir=" + Binary(""),
          "--examples_dir=" + Binary("deploy/examples"), "--seed=1", "--run_dir=" + run};
}

TEST_CASE("the demo reaches its accuracy and writes what it says") {
  const TemporaryFolder folder;
  const std::string run = folder.Path("run");
  std::vector<std::string> command = Demo(run);
  command.push_back("--json=" + folder.Path("figures.json"));
  const Ended ended = RunToEnd(command, kWhole);
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);

  const auto figures = nlohmann::json::parse(folder.Read("figures.json"));
  CHECK(figures["steps"] == 600);
  CHECK(figures["test_accuracy"] > 0.97);
  CHECK(figures == nlohmann::json::parse(folder.Read("run/summary.json")));
  CHECK_THAT(ended.output,
             Contains("trained 600 steps in ") &&
                 Contains(absl::StrFormat("\ntest accuracy  %.2f %%\n",
                                          100 * figures["test_accuracy"].get<double>())));
  for (const std::string path : {"checkpoints/ckpt-600", "job.textproto", "logs"}) {
    CHECK(std::filesystem::exists(run + "/" + path));
    CHECK_THAT(ended.output, Contains(" " + run + "/" + path));
  }
  for (const int step : {300, 600}) {
    const auto manifest = ReadManifest(absl::StrCat(run, "/checkpoints/ckpt-", step));
    REQUIRE(manifest.ok());
    CHECK(manifest->step == step);
  }
  for (const char* task : {"chief", "ps-0", "ps-1", "worker-0", "worker-1", "worker-2"}) {
    CHECK(std::filesystem::file_size(absl::StrCat(run, "/logs/", task, ".log")) > 0);
  }
  CHECK(ProcessesWith(run).empty());
}

// The example of a dataset in `folder`, but with other lines in its job, which reads the data of
// the example `data`.
void ShortenExample(const TemporaryFolder& folder, const std::string& dataset,
                    const std::string& data,
                    const std::vector<std::pair<std::string, std::string>>& lines) {
  const std::filesystem::path from = Binary("deploy/examples/" + dataset);
  const std::filesystem::path to = folder.Path("deploy/examples/" + dataset);
  std::filesystem::create_directories(to);
  std::filesystem::create_directories(folder.Path("deploy/data"));
  std::filesystem::copy_file(from / "model.textproto", to / "model.textproto");
  const std::string link = folder.Path("deploy/data/" + data);
  if (!std::filesystem::exists(link)) {
    std::filesystem::create_directory_symlink(
        std::filesystem::absolute(Binary("deploy/data/" + data)), link);
  }
  std::ifstream file(from / "job.textproto");
  std::string job((std::istreambuf_iterator<char>(file)), {});
  for (const auto& [line, other] : lines) {
    REQUIRE(job.find(line) != std::string::npos);
    job = absl::StrReplaceAll(job, {{line, other}});
  }
  std::ofstream(to / "job.textproto") << job;
}

TEST_CASE("the demo of a text learns its characters and tells bits of each") {
  const TemporaryFolder folder;
  ShortenExample(folder, "text", "text",
                 {{"max_steps: 900", "max_steps: 25"},
                  {"every_steps: 300", "every_steps: 25"},
                  {"held_out: 0.1", "held_out: 0.01"}});
  const std::string run = folder.Path("run");
  const Ended ended =
      RunToEnd({Binary("deploy/cli/demo"), "--bin_dir=" + Binary(""), "--dataset=text",
                "--examples_dir=" + folder.Path("deploy/examples"), "--seed=1", "--run_dir=" + run,
                "--json=" + folder.Path("figures.json")},
               kWhole);
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  const auto figures = nlohmann::json::parse(folder.Read("figures.json"));
  CHECK(figures["steps"] == 25);
  // One of 62 characters by chance has 5.95 bits.
  CHECK(figures["test_bits_per_character"] < 4.6);
  CHECK_THAT(ended.output, Contains("bits per character"));
  CHECK(ProcessesWith(run).empty());
}

TEST_CASE("the demo of clicks trains on what it has generated") {
  const TemporaryFolder folder;
  ShortenExample(folder, "clicks", "digits",
                 {{"data_epochs: 4", "max_steps: 20"}, {"every_steps: 250", "every_steps: 20"}});
  const std::string run = folder.Path("run");
  const Ended ended =
      RunToEnd({Binary("deploy/cli/demo"), "--bin_dir=" + Binary(""), "--dataset=clicks",
                "--examples_dir=" + folder.Path("deploy/examples"), "--run_dir=" + run,
                "--json=" + folder.Path("figures.json")},
               kWhole);
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  const auto figures = nlohmann::json::parse(folder.Read("figures.json"));
  CHECK(figures["steps"] == 20);
  // More than one answer for all.
  CHECK(figures["test_accuracy"] > 0.56);
  CHECK_THAT(ended.output, Contains("generated 200,000 examples to train on"));
}

TEST_CASE("the demo of a gan draws images and has the digits' network judge them") {
  const TemporaryFolder folder;
  ShortenExample(folder, "gan", "digits", {{"max_steps: 20000", "max_steps: 40"}});
  ShortenExample(folder, "digits", "digits", {{"max_steps: 600", "max_steps: 60"}});
  const std::string run = folder.Path("run");
  const Ended ended =
      RunToEnd({Binary("deploy/cli/demo"), "--bin_dir=" + Binary(""), "--dataset=gan",
                "--examples_dir=" + folder.Path("deploy/examples"), "--seed=5", "--run_dir=" + run,
                "--json=" + folder.Path("figures.json")},
               kWhole);
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  const auto figures = nlohmann::json::parse(folder.Read("figures.json"));
  CHECK(figures["steps"] == 40);
  const auto& generated = figures.at("generated");
  CHECK(generated["grid"] == run + "/generated.png");
  CHECK(generated["images"] == 1000);
  // The share that was told is that of the judge's own lines.
  const auto judged = nlohmann::json::parse(folder.Read("run/judged.json"));
  int sure = 0;
  std::set<int> classes;
  for (const auto& prediction : judged.at("predictions")) {
    if (prediction["probability"] < 0.9) continue;
    ++sure;
    classes.insert(prediction["class"].get<int>());
  }
  CHECK(judged.at("predictions").size() == 1000);
  CHECK(generated["sure"] == sure);
  CHECK(generated["classes"] == classes.size());
  // 100 tiles of 32 x 32 pixels with 2 between them.
  CHECK(folder.Read("run/generated.png").substr(12, 12) ==
        std::string("IHDR\0\0\1\x56\0\0\1\x56", 12));
  CHECK_THAT(ended.output, Contains(" " + run + "/generated.png") &&
                               Contains("of 1,000 generated images") &&
                               Contains("--layer=g_image --limit=100 --seed=6 --png=more.png"));
  CHECK(ProcessesWith(run).empty());
}

TEST_CASE("Ctrl-C at any moment of the demo leaves no process, and says what is saved") {
  std::minstd_rand random(11);
  const TemporaryFolder folder;
  for (int round = 0; round < 6; ++round) {
    const std::string run = folder.Path(absl::StrCat("run-", round));
    Process demo(Demo(run));
    // Once it has taken its signals over; then anywhere in the start and the first third.
    REQUIRE(demo.WaitForOutput("state: ./lockstep status ", kWhole));
    CHECK_FALSE(demo.Wait(absl::Milliseconds(random() % 1500)));
    demo.Signal(SIGINT);
    const auto code = demo.Wait(kEnd);
    INFO("round " << round << ": " << demo.Output());
    CHECK(code == 130);
    CHECK(ProcessesWith(run).empty());
    CHECK_THAT(demo.Output(), Contains("stopping: the chief saves and ends the job"));
    // A checkpoint is named if there is one, and is whole.
    const auto saved = ResolveCheckpoint(run + "/checkpoints");
    const std::string named = saved.ok() ? "checkpoint     " + *saved + "\n" : "";
    CHECK_THAT(demo.Output(), Contains(named));
    CHECK((demo.Output().find("To go on from it:") != std::string::npos) == saved.ok());
  }
}

}  // namespace
}  // namespace lockstep::test
