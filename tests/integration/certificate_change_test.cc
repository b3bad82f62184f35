// A running job whose certificates and their authority are replaced, as docs/security.md says.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "common/rpc/tls_credentials.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr absl::Duration kAnswer = absl::Seconds(10);
// The steps outlast the change by the sleep of their workers: 160 s. Those started later do not
// sleep.
constexpr int kSteps = 400;
constexpr absl::Duration kSlowStep = absl::Milliseconds(400);
constexpr char kComplete[] = "the job survives the loss of any one ps again";

JobText Job() { return {.max_steps = kSteps, .sync = "ps_replicas: 1"}; }

// Processes read files while they are replaced: each changes in one moment.
void Replace(const std::string& path, const std::string& by) {
  fs::copy_file(by, path + ".new");  // with its mode
  fs::rename(path + ".new", path);
}

// The certificates of a cluster in the folder that its processes read, and those of an authority
// that comes after theirs.
class TwoAuthorities {
 public:
  explicit TwoAuthorities(Cluster* cluster) : cluster_(cluster), used_(cluster->UseTls()) {
    const TemporaryFolder& folder = cluster->folder();
    next_ = folder.Path("next");
    const Ended made = RunToEnd({Binary("deploy/cli/certificates"), next_,
                                 "--cluster=" + cluster->spec_path(), "--job_name=digits"},
                                kAnswer);
    INFO(made.output);
    REQUIRE(made.exit_code == 0);
    old_reader_ = folder.Path("old-reader.pem");
    fs::copy_file(used_ + "/reader.pem", old_reader_);
    both_ = folder.Write("both.pem", folder.Read("tls/ca.pem") + folder.Read("next/ca.pem"));
  }

  // Each returns when every process serves by the new files.
  void TrustBoth() {
    Replace(used_ + "/ca.pem", both_);
    AwaitAnswers({.certificate = next_ + "/reader.pem", .authorities = both_}, true);
  }
  void UseNextCertificates() {
    for (const char* const name : {"chief", "ps-0", "ps-1", "worker-0", "worker-1", "reader"}) {
      const std::string file = absl::StrCat("/", name, ".pem");
      Replace(used_ + file, next_ + file);
    }
    AwaitAnswers({.certificate = next_ + "/reader.pem", .authorities = next_ + "/ca.pem"}, true);
  }
  void TrustNextAlone() {
    Replace(used_ + "/ca.pem", next_ + "/ca.pem");
    AwaitAnswers({.certificate = old_reader_, .authorities = both_}, false);
  }

 private:
  // Whether each process serves a reader with these files.
  void AwaitAnswers(const security::TlsFiles& reader, bool is_served) {
    const ClusterSpec& spec = cluster_->spec();
    std::vector<std::string> addresses = {spec.chief};
    addresses.insert(addresses.end(), spec.ps.begin(), spec.ps.end());
    addresses.insert(addresses.end(), spec.workers.begin(), spec.workers.end());
    const absl::Time deadline = absl::Now() + kWhole;
    for (const std::string& address : addresses) {
      while (IsServed(reader, address) != is_served) {
        INFO(address << "\n" << cluster_->Logs());
        REQUIRE(absl::Now() < deadline);
      }
    }
  }
  // By a connection of its own.
  static bool IsServed(const security::TlsFiles& reader, const std::string& address) {
    const auto credentials = rpc::MakeTlsToolCredentials({.files = reader});
    REQUIRE(credentials.ok());
    return FetchStatus(address, kAnswer, credentials->get()).ok();
  }

  Cluster* const cluster_;
  const std::string used_;
  std::string next_;
  std::string old_reader_;
  std::string both_;  // authorities
};

void Kill(Process& process) {
  process.Signal(SIGKILL);
  REQUIRE(process.Wait(kWhole) == 128 + SIGKILL);
}

TEST_CASE("the authority of a running job changes: later processes join, and no step is lost") {
  Cluster cluster(2, 2);
  TwoAuthorities authorities(&cluster);
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(Job(), {"--record_losses", "--lease=2"});
  REQUIRE(cluster.WaitForStep(5, kWhole));
  authorities.TrustBoth();
  authorities.UseNextCertificates();
  authorities.TrustNextAlone();

  // These have, and trust, the new authority alone.
  cluster.SlowDown(absl::ZeroDuration());
  Kill(cluster.worker(1));
  cluster.StartWorker(1);
  Kill(cluster.ps(1));
  cluster.StartPs(1);
  const bool has_copy = cluster.chief().WaitForOutput(kComplete, kWhole);
  INFO(cluster.Logs());
  REQUIRE(has_copy);
  Kill(cluster.worker(0));
  cluster.StartWorker(0);
  const nlohmann::json summary = Finish(cluster);

  Cluster calm(2, 2);
  calm.StartAll(Job(), {"--record_losses"});
  const nlohmann::json expected = Finish(calm);
  CHECK(summary["start_step"] == 0);
  CHECK(summary["steps"] == kSteps);
  CHECK(Losses(summary).size() == kSteps);
  CHECK(Losses(summary) == Losses(expected));
  CHECK(summary["test_loss"] == expected["test_loss"]);
}

}  // namespace
}  // namespace lockstep::test
