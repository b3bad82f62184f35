#include "tests/integration/cluster.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/client/status_client.h"
#include "common/rpc/tls_credentials.h"
#include "common/security/job_token.h"
#include "common/security/secret_file.h"
#include "deploy/cli/local_cluster.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kNextLook = absl::Milliseconds(20);

constexpr char kModel[] = R"(
  input_shape: [8, 8, 1]
  layers { name: "flatten" flatten {} }
  layers { name: "hidden" dense { units: 32 } }
  layers { name: "relu" relu {} }
  layers { name: "scores" dense { units: 10 } }
  layers { name: "loss" softmax_cross_entropy {} }
)";

// What device_tests says of a test's device.
bool IsOnGpu() {
  const char* const device = std::getenv("LOCKSTEP_TEST_DEVICE");
  return device != nullptr && std::string(device) == "gpu";
}

}  // namespace

std::string DigitsData() {
  const std::string folder = Binary("deploy/data/digits/");
  return absl::StrCat("idx { train_images: '", folder, "train-images.idx.gz' train_labels: '",
                      folder, "train-labels.idx.gz' test_images: '", folder,
                      "test-images.idx.gz' test_labels: '", folder,
                      "test-labels.idx.gz' } scale: 0.0625");
}

Cluster::Cluster(int ps, int workers, int chiefs)
    : ports_(deploy::PortReservation::Take(chiefs + ps + workers).value()), chiefs_(chiefs) {
  const auto first_chief = ports_.addresses().begin();
  const auto first_ps = first_chief + chiefs;
  spec_ = {.ps = {first_ps, first_ps + ps},
           .workers = {first_ps + ps, ports_.addresses().end()},
           .chief = *first_chief,
           .other_chiefs = {first_chief + 1, first_ps}};
  folder_.Write("cluster.json", deploy::ClusterJsonText(spec_));
}

std::string Cluster::WriteJob(const JobText& text) const {
  folder_.Write("model.textproto", text.model.empty() ? kModel : text.model);
  return folder_.Write(
      "job.textproto",
      absl::StrCat(
          "model: 'model.textproto'\ndata { ", text.data.empty() ? DigitsData() : text.data,
          " }\nglobal_batch: ", text.global_batch, "\nmax_steps: ", text.max_steps, "\n",
          text.losses.empty() ? absl::StrCat("optimizer { ", text.optimizer, " }") : text.losses,
          "\nsync { ", text.sync, " }\nevaluation { ", text.evaluation, " }\ncheckpoint { ",
          text.checkpoint, " }\n", text.more, "\n"));
}

std::vector<std::string> Cluster::Daemon(const std::string& program,
                                         const std::string& task) const {
  std::vector<std::string> command = {Binary(program), "--cluster=" + spec_path()};
  for (std::string& flag : ShownBy(task)) command.push_back(std::move(flag));
  return command;
}

void Cluster::PlaceOn(const VirtualNetwork& network, int host, Role role, int index) {
  network_ = &network;
  hosts_[{role, index}] = host;
}

std::vector<std::string> Cluster::OnHost(Role role, int index,
                                         std::vector<std::string> command) const {
  const auto host = hosts_.find({role, index});
  if (host == hosts_.end()) return command;
  command.push_back("--insecure");
  return network_->CommandOn(host->second, command);
}

std::vector<std::string> Cluster::ShownBy(const std::string& task) const {
  return deploy::ShownBy(task, {.token_path = token_file_, .tls_folder = tls_folder_});
}

const std::string& Cluster::UseToken() {
  token_file_ = folder_.Path("job.token");
  REQUIRE(security::WriteSecret(token_file_, security::JobToken::NewText()).ok());
  credentials_ = rpc::MakeToolCredentials(token_file_).value();
  return token_file_;
}

const std::string& Cluster::UseTls() {
  tls_folder_ = folder_.Path("tls");
  const Ended made = RunToEnd({Binary("deploy/cli/certificates"), tls_folder_,
                               "--cluster=" + spec_path(), "--job_name=digits"},
                              absl::Seconds(20));
  INFO(made.output);
  REQUIRE(made.exit_code == 0);
  credentials_ = rpc::MakeTlsToolCredentials({.files = {.certificate = tls_folder_ + "/reader.pem",
                                                        .authorities = tls_folder_ + "/ca.pem"}})
                     .value();
  return tls_folder_;
}

std::vector<std::string> Cluster::Ps(int index) const {
  std::vector<std::string> command = Daemon("ps/ps", absl::StrCat("ps-", index));
  command.push_back(absl::StrCat("--task_index=", index));
  return OnHost(Role::kPs, index, std::move(command));
}

std::vector<std::string> Cluster::Worker(int index) const {
  std::vector<std::string> command = Daemon("worker/worker", absl::StrCat("worker-", index));
  command.push_back(absl::StrCat("--task_index=", index));
  command.push_back("--threads=1");
  if (sleep_ > absl::ZeroDuration()) {
    command.push_back("--sleep=" + absl::FormatDuration(sleep_));
  }
  if (logs_examples_) {
    command.push_back("--example_log=" + folder_.Path(absl::StrCat("examples-", index)));
  }
  return OnHost(Role::kWorker, index, std::move(command));
}

std::string Cluster::ExampleLog(int worker) const {
  return folder_.Read(absl::StrCat("examples-", worker));
}

std::string Cluster::SummaryName(int chief) {
  return chief == 0 ? "summary.json" : absl::StrCat("summary-", chief, ".json");
}

std::vector<std::string> Cluster::Chief(const std::string& job_path, int index) const {
  std::vector<std::string> command = Daemon("chief/chief", "chief");
  command.push_back("--job=" + job_path);
  command.push_back("--summary=" + folder_.Path(SummaryName(index)));
  if (chiefs_.size() > 1) command.push_back(absl::StrCat("--task_index=", index));
  return OnHost(Role::kChief, index, std::move(command));
}

void Cluster::StartAll(const JobText& job, const std::vector<std::string>& chief_flags,
                       int workers) {
  StartJob(WriteJob(job), chief_flags, workers);
}

void Cluster::StartJob(const std::string& job_path, const std::vector<std::string>& chief_flags,
                       int workers) {
  ps_.clear();
  workers_.clear();
  for (int i = 0; i < static_cast<int>(spec_.ps.size()); ++i) {
    std::vector<std::string> environment;
    if (const auto faults = disk_faults_.find(i); faults != disk_faults_.end()) {
      environment = {"LD_PRELOAD=" + Binary("tests/support/preloaded_disk_faults.so"),
                     "LOCKSTEP_DISK_FAULTS=" + faults->second};
    }
    ps_.push_back(std::make_unique<Process>(Ps(i), std::move(environment)));
  }
  workers_.resize(spec_.workers.size());
  if (workers < 0) workers = static_cast<int>(spec_.workers.size());
  for (int i = 0; i < workers; ++i) StartWorker(i);
  job_path_ = job_path;
  StartChief(chief_flags);
}

void Cluster::UseSpec(ClusterSpec spec) {
  spec_ = std::move(spec);
  folder_.Write("cluster.json", deploy::ClusterJsonText(spec_));
}

void Cluster::Move(Role role, int index) {
  more_ports_.push_back(deploy::PortReservation::Take(1).value());
  const std::string& address = more_ports_.back().addresses().front();
  switch (role) {
    case Role::kPs:
      spec_.ps[index] = address;
      break;
    case Role::kWorker:
      spec_.workers[index] = address;
      break;
    case Role::kChief:
      (index == 0 ? spec_.chief : spec_.other_chiefs[index - 1]) = address;
  }
  folder_.Write("cluster.json", deploy::ClusterJsonText(spec_));
}

void Cluster::StartPs(int index) { ps_[index] = std::make_unique<Process>(Ps(index)); }

std::vector<std::string> Cluster::GpuEnvironment() const {
  if (IsOnGpu()) return {};
  return {"LD_LIBRARY_PATH=" + folder_.Path("cuda")};
}

void Cluster::UseGpu(int worker, int64_t failing_call) {
  failing_calls_[worker] = failing_call;
  if (IsOnGpu()) return;
  const std::filesystem::path folder = folder_.Path("cuda");
  if (!std::filesystem::create_directory(folder)) return;
  for (const char* const name : {"libcuda.so.1", "libcublasLt.so.12", "libcublasLt.so.13",
                                 "libcublasLt.so.14", "libcudnn.so.9", "libnccl.so.2"}) {
    std::filesystem::create_symlink(Binary("tests/support/cuda/libfake_cuda.so"), folder / name);
  }
}

void Cluster::StartWorker(int index) {
  std::vector<std::string> worker = Worker(index);
  worker.push_back("--device=cpu");
  std::vector<std::string> environment;
  if (const auto gpu = failing_calls_.find(index); gpu != failing_calls_.end()) {
    worker.back() = "--device=cuda";
    environment = GpuEnvironment();
    environment.push_back(absl::StrCat("LOCKSTEP_IMITATED_GPUS=", imitated_gpus_));
    if (gpu->second >= 0) {
      environment.push_back(absl::StrCat("LOCKSTEP_FAILING_CUDA_CALL=", gpu->second));
    }
  }
  workers_[index] = std::make_unique<Process>(std::move(worker), std::move(environment));
}

void Cluster::StartChief(const std::vector<std::string>& flags, int index) {
  std::vector<std::string> chief = Chief(job_path_, index);
  chief.insert(chief.end(), flags.begin(), flags.end());
  chiefs_[index] = std::make_unique<Process>(std::move(chief));
}

void Cluster::StartStandby(int index, std::vector<std::string> flags) {
  flags.push_back("--standby");
  StartChief(flags, index);
}

bool Cluster::WaitForStep(int64_t step, absl::Duration timeout, int chief) {
  const std::string& address = spec_.AddressOf(Role::kChief, chief);
  const absl::Time deadline = absl::Now() + timeout;
  while (absl::Now() < deadline && !chiefs_[chief]->Wait(kNextLook)) {
    const auto status = FetchStatus(address, absl::Seconds(1), credentials_.get());
    if (status.ok() && status->global_step() > step) return true;
  }
  return false;
}

std::string Cluster::Logs() {
  std::string logs;
  const auto add = [&logs](const std::string& name, Process& process) {
    const std::optional<int> code = process.Wait(absl::ZeroDuration());
    absl::StrAppend(&logs, name, code ? absl::StrCat(", ended with ", *code) : ", runs", ":\n",
                    process.Output());
  };
  for (size_t i = 0; i < chiefs_.size(); ++i) {
    if (chiefs_[i] != nullptr) add(absl::StrCat("chief ", i), *chiefs_[i]);
  }
  for (size_t i = 0; i < ps_.size(); ++i) add(absl::StrCat("ps ", i), ps(i));
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i] != nullptr) add(absl::StrCat("worker ", i), worker(i));
  }
  return logs;
}

}  // namespace lockstep::test
