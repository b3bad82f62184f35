// lockstep certificates: makes a certificate for each process of a cluster.
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/config/cluster_reader.h"
#include "deploy/cli/bare_word_command.h"
#include "deploy/cli/job_certificates.h"

ABSL_FLAG(std::string, folder, "", "where to put them; may be given without the flag's name");
ABSL_FLAG(std::string, cluster, "", "cluster spec file: JSON or text proto");
ABSL_FLAG(std::string, job_name, "",
          "name of the job in the certificates: processes of another job are refused; default: "
          "the job of the authority in the folder; lockstep for a new authority");
ABSL_FLAG(int, days, 365, "how long they are valid");

namespace lockstep::deploy {
namespace {

constexpr char kUsage[] =
    "lockstep certificates FOLDER --cluster=FILE\n"
    "\n"
    "Makes an authority (ca.pem, ca.key) and a certificate for each process of the cluster,\n"
    "for a reader and for an operator. Run it again before they end: running processes take the "
    "new ones.\n"
    "docs/security.md says what goes where.\n";

constexpr int kMaxDays = 3650;

absl::StatusOr<int> MakeAll() {
  const std::string folder = absl::GetFlag(FLAGS_folder);
  const int days = absl::GetFlag(FLAGS_days);
  if (folder.empty() || absl::GetFlag(FLAGS_cluster).empty()) {
    return UsageError(absl::StrCat(folder.empty() ? "no folder is named" : "--cluster: not set",
                                   ". Remedy: ./lockstep certificates FOLDER --cluster=FILE"));
  }
  if (days < 1 || days > kMaxDays) {
    return UsageError(
        absl::StrCat("--days: expected 1 to ", kMaxDays, ", got ", days, ". Remedy: --days=365"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const ClusterSpec cluster,
                            ReadClusterFile(absl::GetFlag(FLAGS_cluster)));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto made,
      MakeCertificates(folder, cluster, absl::GetFlag(FLAGS_job_name), absl::Hours(24 * days)));
  std::printf("%-10s --tls_ca=%s\n", "all", AuthorityPath(folder).c_str());
  for (const auto& [task, path] : made) {
    std::printf("%-10s --tls_cert=%s\n", task.c_str(), path.c_str());
  }
  return 0;
}

}  // namespace
}  // namespace lockstep::deploy

int main(int argc, char** argv) {
  using namespace lockstep::deploy;
  return RunCommand(
      {"lockstep certificates", kUsage, {"--folder", "--cluster", "--job_name", "--days"}}, argc,
      argv, MakeAll);
}
