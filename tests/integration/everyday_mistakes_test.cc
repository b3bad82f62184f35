// Mistakes of an ordinary day. Each ends before a process of the job has started, with one line
// that names the place and the remedy.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/integration/check_ends.h"
#include "tests/integration/cluster.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {
namespace {

// Three flowers, each twice.
constexpr char kCsv[] =
    "length,width,species\n5.1,3.5,0\n4.9,3.0,0\n7.0,3.2,1\n6.4,3.2,1\n6.3,3.3,2\n5.8,2.7,2\n";
constexpr char kModel[] =
    "input_shape: [2]\nlayers { name: 'scores' dense { units: 3 } }\n"
    "layers { name: 'loss' softmax_cross_entropy {} }\n";
constexpr char kJob[] =
    "model: 'model.textproto'\ndata { csv { train: 'train.csv' label_column: 'species' } }\n"
    "global_batch: 4\nmax_steps: 5\noptimizer { adam {} learning_rate { base: 0.01 } }\n"
    "checkpoint { folder: 'checkpoints' }\nlocal { ps: 1 workers: 2 }\n";

// A sound job in files.
struct Files {
  Files() {
    folder.Write("train.csv", kCsv);
    folder.Write("model.textproto", kModel);
    folder.Write("job.textproto", kJob);
  }
  // One file with a part replaced.
  void Change(const std::string& file, const std::string& from, const std::string& to) const {
    const std::string text = folder.Read(file);
    REQUIRE(absl::StrContains(text, from));
    folder.Write(file, absl::StrReplaceAll(text, {{from, to}}));
  }
  std::vector<std::string> Up(const std::string& job = "job.textproto") const {
    return {Binary("deploy/cli/up"), "--job=" + folder.Path(job), "--bin_dir=" + Binary(""),
            "--run_dir=" + folder.Path("run")};
  }
  // `up` ends so, and has started nothing.
  void CheckUp(int exit_code, const std::vector<std::string>& words,
               const std::string& job = "job.textproto") const {
    const Ended ended = RunToEnd(Up(job), absl::Seconds(10));
    INFO(ended.output);
    CHECK(ended.exit_code == exit_code);
    for (const std::string& word : words) {
      CHECK_THAT(ended.output, Catch::Matchers::Contains(word));
    }
    CHECK_THAT(ended.output, Catch::Matchers::Contains("Remedy: "));
    CHECK_THAT(ended.output, !Catch::Matchers::Contains("starting "));
  }

  TemporaryFolder folder;
};

TEST_CASE("the model file in place of the job file is recognised") {
  Files().CheckUp(78,
                  {"model.textproto:1:1: unknown field \"input_shape\" in the job: it is a field "
                   "of model files. Remedy: give the file of the job here"},
                  "model.textproto");
}

TEST_CASE("the job file may stand first, without --job") {
  const Files files;
  const Ended ended = RunToEnd(
      {Binary("deploy/cli/up"), files.folder.Path("other.textproto"), "--bin_dir=" + Binary("")},
      absl::Seconds(10));
  INFO(ended.output);
  CHECK(ended.exit_code == 66);
  CHECK_THAT(ended.output, Catch::Matchers::Contains("other.textproto"));
}

TEST_CASE("images and labels in each other's place are told apart") {
  const Files files;
  const std::string digits = Binary("deploy/data/digits/");
  files.folder.Write(
      "job.textproto",
      absl::StrCat("model: 'model.textproto' data { idx { train_images: '", digits,
                   "train-labels.idx.gz' train_labels: '", digits,
                   "train-images.idx.gz' } } global_batch: 4 max_steps: 5 optimizer { "
                   "sgd {} learning_rate { base: 1 } } local { ps: 1 workers: 2 }"));
  files.CheckUp(78, {"train-labels.idx.gz: ",
                     "name the file of the examples: this one has a single "
                     "number for each, as labels do"});
}

TEST_CASE("a label column in another case is told with the nearest column") {
  const Files files;
  files.Change("job.textproto", "'species'", "'Species'");
  files.CheckUp(78, {"train.csv: no label column \"Species\", did you mean \"species\"",
                     "\"length\", \"width\", \"species\""});
}

TEST_CASE("names of classes and missing values are told with line and column") {
  const Files names;
  names.Change("train.csv", "3.5,0", "3.5,setosa");
  names.CheckUp(
      65, {"train.csv: line 2: column \"species\": ", "got \"setosa\"", "classes are 0, 1, 2"});
  const Files missing;
  missing.Change("train.csv", "7.0,3.2", "7.0,");
  missing.CheckUp(65, {"train.csv: line 4: column \"width\": ", "there are no missing values"});
}

TEST_CASE("an activation inside a layer is told how it is written") {
  const Files files;
  files.Change("model.textproto", "units: 3", "units: 3 activation: 'relu'");
  files.CheckUp(78,
                {"model.textproto:2:42: unknown field \"activation\" in dense. Remedy: write it "
                 "as a layer of its own"});
}

TEST_CASE("an input shape that counts the label is told the shape of the examples") {
  const Files files;
  files.Change("model.textproto", "[2]", "[3]");
  files.CheckUp(78,
                {"train.csv: examples have the shape [2], the model's input is [3]. Remedy: write "
                 "input_shape: [2]"});
}

TEST_CASE("a quote that is missing is suspected on its line") {
  const Files files;
  files.Change("job.textproto", "'train.csv' label", "'train.csv label");
  files.CheckUp(78, {"job.textproto:2:", "does not end on its line. Remedy: add the quote"});
}

TEST_CASE("a number with an exponent where a count is expected names field and form") {
  const Files files;
  files.Change("job.textproto", "max_steps: 5", "max_steps: 1e3");
  files.CheckUp(78, {"job.textproto:4:12: max_steps: expected a whole number, got \"1e3\"",
                     "max_steps: 100"});
}

TEST_CASE("a checkpoint folder that is a file is found before the job starts") {
  const Files files;
  files.Change("job.textproto", "'checkpoints'", "'train.csv'");
  files.CheckUp(73, {"job.textproto: checkpoint.folder: ", "train.csv", "Remedy: name a folder"});
}

TEST_CASE("JSON in place of a text proto is recognised") {
  const Files files;
  files.folder.Write("job.textproto", "{\"model\": \"model.textproto\"}");
  files.CheckUp(78, {"job.textproto:1:1: expected a field, got \"{\"", "not JSON"});
}

TEST_CASE("the job file in place of the cluster spec, and a URL in it, are recognised") {
  const Files files;
  const std::string job = files.folder.Path("job.textproto");
  CheckEnds({Binary("ps/ps"), "--cluster=" + job, "--task_index=0"}, 78,
            {"job.textproto:1:1: ",
             "it is a field of job files. Remedy: give the file of the cluster "
             "spec here"});
  const std::string url = files.folder.Write(
      "url.json", R"({"ps": ["http://a:1"], "worker": ["a:2"], "chief": ["a:3"]})");
  CheckEnds({Binary("ps/ps"), "--cluster=" + url, "--task_index=0"}, 78,
            {"url.json: ps 0: ", "nothing like http:// belongs before the host", "Remedy"});
}

TEST_CASE("a folder of timelines that cannot be made is named with its flag") {
  const Files files;
  std::vector<std::string> up = files.Up();
  up.push_back("--timeline_dir=" + files.folder.Path("train.csv"));
  CheckEnds(up, 73,
            {"--timeline_dir: ", "train.csv: a file, expected a folder. Remedy: name a folder"});
}

TEST_CASE("TF_CONFIG that holds the name of a file is told apart from broken JSON") {
  CheckEnds({Binary("worker/worker")}, 78,
            {"TF_CONFIG: expected JSON, got \"cluster.json\"", "Remedy", "--cluster"},
            {"TF_CONFIG=cluster.json"});
}

TEST_CASE("a model that is used on other data than its own says what it takes") {
  const Files files;
  const Ended trained = RunToEnd(files.Up(), absl::Seconds(60));
  INFO(trained.output);
  REQUIRE(trained.exit_code == 0);
  const auto predict = [&](const std::string& checkpoint, const std::string& data) {
    return std::vector<std::string>{Binary("worker/predict"), "predict",
                                    "--checkpoint=" + checkpoint, "--data=" + data};
  };
  const std::string model = files.folder.Path("checkpoints");
  CheckEnds(
      predict(model, Binary("deploy/data/digits/test-images.idx.gz")), 78,
      {"examples have the shape [8,8], the model's input is [2]. Remedy: give --data examples "
       "like those that the model was trained on"});
  CheckEnds(predict(model, files.folder.Write("one.csv", "length\n5.1\n")), 78,
            {"one.csv: 1 column, the model takes 2 numbers, or 3 columns with the label in column "
             "\"species\""});
  CheckEnds(predict(model, files.folder.path()), 66, {"Remedy: give --data a file"});
  CheckEnds(predict(files.folder.Path("job.textproto"), files.folder.Path("train.csv")), 66,
            {"job.textproto: ", "Remedy: --checkpoint=DIR names a folder that a job wrote"});
  const auto with = [&](const std::string& flag) {
    std::vector<std::string> command = predict(model, files.folder.Path("train.csv"));
    command.push_back(flag);
    return command;
  };
  CheckEnds(with("--layer=scors"), 78,
            {"--layer: expected a layer of the model that is no loss, got \"scors\"; did you mean "
             "\"scores\"? Remedy: name one of scores"});
  CheckEnds(with("--png=a.png"), 64,
            {"--png, --idx: the model tells classes. Remedy: --layer=NAME"});
  const std::string nowhere = files.folder.Path("absent/result.json");
  CheckEnds(with("--json=" + nowhere), 73,
            {"--json=" + nowhere + ": ", "No such file or directory. Remedy: name a file"});
  std::vector<std::string> evaluate = with("--layer=scores");
  evaluate[1] = "evaluate";
  CheckEnds(evaluate, 64, {"--layer: not a flag of evaluate. Remedy: predict takes it"});
}

TEST_CASE("a model whose test examples have moved, or that is damaged, is used another way") {
  const Files files;
  files.Change("job.textproto", "label_column", "test: 'test.csv' label_column");
  files.folder.Write("test.csv", kCsv);
  const Ended trained = RunToEnd(files.Up(), absl::Seconds(60));
  INFO(trained.output);
  REQUIRE(trained.exit_code == 0);
  const std::string model = files.folder.Path("checkpoints/ckpt-5");
  const std::vector<std::string> evaluate = {Binary("worker/predict"), "evaluate",
                                             "--checkpoint=" + model};
  std::filesystem::rename(files.folder.Path("test.csv"), files.folder.Path("moved.csv"));
  CheckEnds(evaluate, 66,
            {"test.csv: ", "Remedy: --data=FILE names examples that this user may read"});
  files.folder.Write("checkpoints/ckpt-5/manifest.json", "{");
  CheckEnds(evaluate, 65,
            {"manifest.json: ", "Remedy: use another checkpoint: --checkpoint=DIR/ckpt-STEP"});
}

TEST_CASE("a tool that lacks an argument, or reaches nobody, says what to do") {
  const Cluster cluster(1, 1);
  const std::string address = cluster.spec().ps[0];
  CheckEnds({Binary("deploy/cli/status"), address}, 138,
            {address, "Remedy: if the process runs, its address"});
  const std::string make = Binary("deploy/cli/certificates");
  const std::string remedy = "Remedy: ./lockstep certificates FOLDER --cluster=FILE";
  CheckEnds({make}, 64, {"no folder is named", remedy});
  CheckEnds({make, "tls"}, 64, {"--cluster: not set", remedy});
  CheckEnds({make, "tls", "--cluster=c.json", "--days=0"}, 64,
            {"--days: expected 1 to 3650, got 0", "Remedy: --days=365"});
}

}  // namespace
}  // namespace lockstep::test
