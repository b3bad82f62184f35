// Bad input: each case ends within 10 seconds with its exit code and names the place and the
// remedy.
#include <signal.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/integration/check_ends.h"
#include "tests/integration/cluster.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kLimit = absl::Seconds(10);

// A chief refuses this job by itself.
void CheckChiefRefuses(const JobText& job, int exit_code, const std::vector<std::string>& words) {
  const Cluster cluster(1, 3);
  CheckEnds(cluster.Chief(cluster.WriteJob(job)), exit_code, words);
}

// The whole cluster ends with this code: what reads the data may be any of its processes.
void CheckRunFails(const std::string& data, const std::string& model, int exit_code,
                   const std::vector<std::string>& words) {
  const Cluster cluster(1, 1);
  const std::string job =
      cluster.WriteJob({.data = data, .model = model, .more = "local { ps: 1 workers: 2 }"});
  CheckEnds({Binary("deploy/cli/up"), "--job=" + job, "--bin_dir=" + Binary(""),
             "--run_dir=" + cluster.folder().Path("run")},
            exit_code, words);
}

TEST_CASE("missing files are named") {
  Cluster cluster(1, 1);
  const std::string missing = cluster.folder().Path("missing");
  CheckEnds({Binary("ps/ps"), "--cluster=" + missing, "--task_index=0"}, 66, {missing});
  CheckEnds({Binary("worker/worker"), "--cluster=" + missing, "--task_index=0"}, 66, {missing});
  CheckEnds(cluster.Chief(missing), 66, {missing});
  CheckRunFails("csv { train: '/no/such/train.csv' label_column: 'y' }",
                "input_shape: 2 layers { name: 'd' dense { units: 2 } } "
                "layers { name: 'loss' softmax_cross_entropy {} }",
                66, {"/no/such/train.csv"});
}

TEST_CASE("a device that cannot be used is refused before the chief is asked") {
  const Cluster cluster(1, 1);
  const auto worker = [&](const std::string& device) {
    std::vector<std::string> arguments = cluster.Worker(0);
    arguments.push_back("--device=" + device);
    return arguments;
  };
  CheckEnds(
      worker("gpu"), 64,
      {"--device: expected cpu, auto, cuda, or GPUs such as cuda:0,cuda:1, got \"gpu\". Remedy: "});
  CheckEnds(worker("cuda:0,cuda:0"), 64, {"cuda:0 comes twice", "Remedy: name each GPU once"});
  std::vector<std::string> limited = worker("cuda");
  limited.push_back("--gpu_memory_limit=-1");
  CheckEnds(limited, 64, {"--gpu_memory_limit: expected GiB, 0 to 1048576, got -1. Remedy: "});
  // No machine has so many: one without a driver says that, one with GPUs how many it has.
  CheckEnds(worker("cuda:1000000"), 78, {"Remedy", "CUDA", "--device=cpu"});
}

TEST_CASE("a file that a worker cannot make is named with its flag and a remedy") {
  const Cluster cluster(1, 1);
  const std::string path = cluster.folder().Path("absent/file.csv");
  for (const std::string flag : {"--timeline", "--example_log"}) {
    std::vector<std::string> arguments = cluster.Worker(0);
    arguments.push_back(absl::StrCat(flag, "=", path));
    CheckEnds(arguments, 73,
              {absl::StrCat(flag, ": ", path, ": cannot create: No such file or directory"),
               "Remedy: name a file in a folder in which this user may write"});
  }
}

TEST_CASE("a malformed cluster spec is refused with the place of the mistake") {
  const Cluster cluster(1, 1);
  const auto refuse = [&](const std::string& text, const std::vector<std::string>& words) {
    const std::string path = cluster.folder().Write("bad.json", text);
    CheckEnds({Binary("ps/ps"), "--cluster=" + path, "--task_index=0"}, 78, words);
    CheckEnds({Binary("worker/worker"), "--cluster=" + path, "--task_index=0"}, 78, words);
  };
  refuse(R"({"ps": ["127.0.0.1:2222"], "worker": [)", {"bad.json:1:"});
  refuse("", {"bad.json"});
  refuse(R"({"ps": ["a:1"], "worker": ["a:1"], "chief": ["a:2"]})",
         {"ps 0 and worker 0", "a:1", "Remedy"});
  refuse(R"({"ps": ["a:1"], "worker": ["a:99999"], "chief": ["a:2"]})", {"a:99999"});
}

TEST_CASE("a malformed TF_CONFIG, or one without a chief, is refused") {
  CheckEnds({Binary("worker/worker")}, 78, {"TF_CONFIG", "1:"}, {"TF_CONFIG={\"cluster\": "});
  CheckEnds({Binary("worker/worker")}, 78, {"TF_CONFIG", "no chief", "Remedy", "\"chief\""},
            {R"(TF_CONFIG={"cluster": {"ps": ["a:1"], "worker": ["a:2"]},
                           "task": {"type": "worker", "index": 0}})"});
  CheckEnds({Binary("ps/ps")}, 64, {"--cluster", "TF_CONFIG"});
}

TEST_CASE("a task index outside the spec is refused with the indices that there are") {
  Cluster cluster(1, 2);
  CheckEnds(cluster.Worker(2), 78, {"worker 2", "0 to 1"});
  CheckEnds(cluster.Ps(1), 78, {"ps 1"});
}

TEST_CASE("an unknown flag is refused and the nearest one named") {
  for (const char* binary : {"ps/ps", "worker/worker", "chief/chief"}) {
    CheckEnds({Binary(binary), "--clutser=x"}, 64, {"--clutser", "--cluster"});
  }
}

TEST_CASE("flags with values that mean nothing are refused before the job") {
  const Cluster cluster(1, 1);
  const auto with = [](std::vector<std::string> arguments, const std::string& flag) {
    arguments.push_back(flag);
    return arguments;
  };
  CheckEnds(with(cluster.Ps(0), "--start_timeout=-5"), 64, {"--start_timeout", "got -5", "Remedy"});
  CheckEnds(with(cluster.Worker(0), "--threads=-3"), 64, {"--threads", "got -3", "Remedy"});
  const std::string nowhere = cluster.folder().Path("missing/summary.json");
  CheckEnds(with(cluster.Chief(cluster.WriteJob({})), "--summary=" + nowhere), 73,
            {"--summary", nowhere, ". Remedy: "});
  for (const std::string flag : {"--drain", "--quorum_deadline"}) {
    CheckEnds(with(cluster.Chief(cluster.WriteJob({})), flag + "=-1"), 64,
              {flag + ": expected seconds, 0 or more, got -1. Remedy: "});
  }
  CheckEnds(with(cluster.Ps(0), "--orphan_timeout=nan"), 64,
            {"--orphan_timeout: expected seconds, 0 or more, got nan. Remedy: "});
  CheckEnds(with(cluster.Ps(0), "--copy_port=70000"), 64, {"--copy_port", "got 70000. Remedy: "});
  CheckEnds(with(cluster.Ps(0), "--log_level=loud"), 64, {"got \"loud\". Remedy: "});
  CheckEnds(with(cluster.Worker(0), "--sleep=abc"), 64,
            {"--sleep: expected a duration such as 50ms, got \"abc\". Remedy: "});
  for (const std::string flag : {"--sleep", "--stall"}) {
    CheckEnds(with(cluster.Worker(0), flag + "=-50ms"), 64,
              {flag + ": expected a duration, 0 or more, got -50ms. Remedy: "});
  }
}

TEST_CASE("help and version of each program are short, complete and no mistake") {
  for (const char* binary : {"ps/ps", "worker/worker", "chief/chief"}) {
    CheckEnds({Binary(binary), "--help"}, 0, {"--cluster", "--start_timeout", "--insecure"});
    CheckEnds({Binary(binary), "--version"}, 0, {"0.1.0"});
  }
}

TEST_CASE("two processes with the same role and index do not both run") {
  Cluster cluster(1, 1);
  Process first(cluster.Ps(0));
  REQUIRE(first.WaitForOutput("listening", kLimit));
  CheckEnds(cluster.Ps(0), 78, {"ps 0", cluster.spec().ps[0]});
  CHECK(first.running());
}

TEST_CASE("a port that another program holds is named") {
  Cluster cluster(1, 1);
  Process first(cluster.Ps(0));
  REQUIRE(first.WaitForOutput("listening", kLimit));
  const std::string spec = cluster.folder().Write(
      "other.json", absl::StrCat(R"({"ps": ["127.0.0.1:9"], "worker": [")", cluster.spec().ps[0],
                                 R"("], "chief": ["127.0.0.1:8"]})"));
  CheckEnds({Binary("worker/worker"), "--cluster=" + spec, "--task_index=0"}, 138,
            {cluster.spec().ps[0]});
}

// The port of a loopback address, at all addresses of this machine.
std::string AtAllAddresses(const std::string& loopback) {
  return "0.0.0.0" + loopback.substr(loopback.rfind(':'));
}

TEST_CASE("an address that is not loopback is served only with --insecure") {
  const Cluster cluster(1, 1);
  const std::string everywhere = AtAllAddresses(cluster.spec().ps[0]);
  const std::string spec = cluster.folder().Write(
      "public.json", absl::StrCat(R"({"ps": [")", everywhere,
                                  R"("], "worker": ["127.0.0.1:9"], "chief": ["127.0.0.1:8"]})"));
  CheckEnds({Binary("ps/ps"), "--cluster=" + spec, "--task_index=0"}, 78,
            {everywhere, "--insecure"});
}

TEST_CASE("--listen is the address that --insecure is about") {
  Cluster cluster(1, 1);
  std::vector<std::string> open = cluster.Ps(0);
  const std::string everywhere = AtAllAddresses(cluster.spec().ps[0]);
  open.push_back("--listen=" + everywhere);
  CheckEnds(open, 78, {everywhere, "--insecure"});

  const std::string advertised = cluster.folder().Write(
      "advertised.json",
      R"({"ps": ["node1:2222"], "worker": ["node1:2223"], "chief": ["node1:2221"]})");
  Process ps({Binary("ps/ps"), "--cluster=" + advertised, "--task_index=0",
              "--listen=" + cluster.spec().ps[0]});
  CHECK(ps.WaitForOutput("listening on " + cluster.spec().ps[0], kLimit));
}

TEST_CASE("a process whose own name does not resolve in time ends with 138") {
  const Cluster cluster(1, 1);
  const std::string spec =
      cluster.folder().Write("names.json", R"({"ps": ["no-such-host.invalid:2222"],
                        "worker": ["no-such-worker.invalid:2222"],
                        "chief": ["no-such-chief.invalid:2222"]})");
  const std::vector<std::string> flags = {"--cluster=" + spec, "--insecure", "--start_timeout=1"};
  const auto check = [&](std::vector<std::string> command, const std::string& name) {
    command.insert(command.end(), flags.begin(), flags.end());
    CheckEnds(command, 138, {name + " cannot be resolved", "--start_timeout", "Remedy"});
  };
  check({Binary("ps/ps"), "--task_index=0"}, "no-such-host.invalid");
  check({Binary("worker/worker"), "--task_index=0"}, "no-such-worker.invalid");
  check({Binary("chief/chief"), "--job=" + cluster.WriteJob({})}, "no-such-chief.invalid");
}

TEST_CASE("a worker whose cluster spec differs from the chief's is told the difference") {
  Cluster cluster(1, 2);
  Process ps(cluster.Ps(0));
  Process chief(cluster.Chief(cluster.WriteJob({})));
  const std::string other = absl::StrReplaceAll(cluster.folder().Read("cluster.json"),
                                                {{cluster.spec().workers[1], "127.0.0.1:7"}});
  const std::string spec = cluster.folder().Write("other.json", other);
  CheckEnds({Binary("worker/worker"), "--cluster=" + spec, "--task_index=0"}, 78,
            {"worker 1", "127.0.0.1:7", cluster.spec().workers[1]});
}

TEST_CASE("a chief is told how the cluster spec of a ps differs from its own") {
  Cluster cluster(2, 1);
  const std::vector<std::string>& ps = cluster.spec().ps;
  const std::string text = cluster.folder().Read("cluster.json");
  const std::string worker = cluster.folder().Write(
      "worker.json", absl::StrReplaceAll(text, {{cluster.spec().workers[0], "127.0.0.1:7"}}));
  const std::string swapped = cluster.folder().Write(
      "swapped.json", absl::StrReplaceAll(text, {{ps[0], ps[1]}, {ps[1], ps[0]}}));
  for (const std::string& spec : {worker, swapped}) {
    INFO(spec);
    const auto start = [&](int index) {
      return std::vector<std::string>{Binary("ps/ps"), "--cluster=" + spec,
                                      absl::StrCat("--task_index=", index)};
    };
    Process first(start(0));
    Process second(start(1));
    std::vector<std::string> chief = cluster.Chief(cluster.WriteJob({}));
    chief.push_back("--start_timeout=8");
    CheckEnds(chief, 78, {"has another cluster spec than the chief", "Remedy"});
  }
}

TEST_CASE("a host that does not answer is named again and again, until --start_timeout") {
  Cluster cluster(1, 1);
  std::vector<std::string> command = cluster.Chief(cluster.WriteJob({}));
  command.push_back("--start_timeout=11");
  Process chief(command);
  const std::string silent = cluster.spec().ps[0];
  CHECK(chief.WaitForOutput(silent, kLimit));
  CHECK(chief.Wait(absl::Seconds(25)) == 138);
  std::string output = chief.Output();
  int times = 0;
  for (size_t at = output.find("waiting for"); at != std::string::npos;
       at = output.find("waiting for", at + 1)) {
    ++times;
  }
  INFO(output);
  CHECK(times >= 2);
  CHECK_THAT(output, Contains("Remedy"));
}

TEST_CASE("an unknown field or layer is refused with line and column") {
  CheckChiefRefuses({.more = "batch_size: 3"}, 78, {"job.textproto:9:", "batch_size"});
  CheckChiefRefuses({.model = "input_shape: [8, 8, 1]\nlayers { name: 'c' convolution {} }"}, 78,
                    {"model.textproto:2:", "convolution"});
}

TEST_CASE("shapes that do not fit are refused with the layer's name") {
  CheckChiefRefuses({.model = "input_shape: [8, 8, 1] layers { name: 'd' dense { units: 10 } } "
                              "layers { name: 'loss' softmax_cross_entropy {} }"},
                    78, {"model.textproto", "\"d\"", "flatten"});
}

TEST_CASE("more replicas to aggregate than there are is refused, by the token policy's rule") {
  CheckChiefRefuses({.sync = "replicas_to_aggregate: 4"}, 78, {"replicas_to_aggregate", "4", "3"});
  CheckChiefRefuses({.sync = "token_policy: FIFO replicas_to_aggregate: 7 init_tokens: 2"}, 78,
                    {"init_tokens"});
}

constexpr char kTwoInputs[] =
    "input_shape: 2 layers { name: 'd' dense { units: 2 } } "
    "layers { name: 'loss' softmax_cross_entropy {} }";

// A CSV file of the test's own with two features and two classes.
void CheckCsvRefused(const std::string& rows, int exit_code, const std::vector<std::string>& words,
                     const std::string& model = kTwoInputs) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("t.csv", "a,b,y\n1,2,0\n3,4,1\n" + rows);
  CheckRunFails(absl::StrCat("csv { train: '", path, "' label_column: 'y' }"), model, exit_code,
                words);
}

TEST_CASE("a CSV row with too few columns, a word for a number or a wild label is named") {
  CheckCsvRefused("5,0\n", 65, {"t.csv: line 4:"});
  CheckCsvRefused("5,many,0\n", 65, {"t.csv: line 4:", "many"});
  CheckCsvRefused("5,6,2\n", 78, {"t.csv: line 4: label 2", "from 0 to 1", "Remedy"});
}

TEST_CASE("a row index that is no whole number or beyond the table is named") {
  const std::string model =
      "input_shape: 2 layers { name: 'e' embedding { rows: 5 dim: 2 combiner: SUM } } "
      "layers { name: 'loss' softmax_cross_entropy {} }";
  CheckCsvRefused("0,5,0\n", 78, {"t.csv: line 4: column \"b\": 5, expected", "from 0 to 4"},
                  model);
  CheckCsvRefused("0.5,4,0\n", 78, {"t.csv: line 4: column \"a\": 0.5, expected"}, model);
}

TEST_CASE("state inputs that nobody takes, or that the data do not give, are named") {
  const auto model = [](const std::string& states, const std::string& inputs) {
    return absl::StrCat("input_shape: [1, 2] ", states, " layers { name: 'gru' inputs: [", inputs,
                        "] gru { units: 3 } } layers { name: 'loss' softmax_cross_entropy {} }");
  };
  const std::string h = "state_inputs { name: 'h' units: 3 }";
  const TemporaryFolder folder;
  const std::string csv =
      absl::StrCat("csv { train: '", folder.Write("t.csv", "a,b,y\n1,2,0\n3,4,1\n5,6,2\n"),
                   "' label_column: 'y' } ");
  const auto rows = [&](const std::string& text) {
    return absl::StrCat(csv, "state_inputs { name: 'h' train: '", folder.Write("h.csv", text),
                        "' }");
  };
  CheckRunFails(csv, model(h, "'input'"), 78,
                {"model.textproto: state_inputs: no layer takes \"h\"", "Remedy"});
  CheckRunFails(csv, model(h, "'input', 'h'"), 78,
                {"data.state_inputs: expected \"h\", which the model takes", "Remedy"});
  CheckRunFails(rows("a\n1\n2\n3\n"), model("", "'input'"), 78,
                {"\"h\": the model has no state input of this name", "Remedy"});
  CheckRunFails(rows("a,b,c\n1,2,3\n4,5,6\n"), model(h, "'input', 'h'"), 65,
                {"h.csv: has 2 rows", "t.csv, which has 3 rows", "Remedy"});
}

void CheckIdxRefused(const std::string& images, const std::vector<std::string>& words) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("images.idx", images);
  CheckRunFails(absl::StrCat("idx { train_images: '", path, "' train_labels: '",
                             Binary("deploy/data/digits/train-labels.idx.gz"), "' }"),
                "", 65, words);
}

TEST_CASE("truncated, wrong and empty IDX files are refused") {
  CheckIdxRefused("", {"images.idx"});
  CheckIdxRefused("GIF89a and so on", {"images.idx", "magic"});
  CheckIdxRefused(std::string("\0\0\x08\x03\0\0\x05\x9e\0\0\0\x08\0\0\0\x08half", 20),
                  {"images.idx"});
}

}  // namespace
}  // namespace lockstep::test
