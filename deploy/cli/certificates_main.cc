// lockstep certificates: makes a certificate for each process of a cluster.
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "common/base/exit_code.h"
#include "common/base/standard_streams.h"
#include "common/base/status_macros.h"
#include "common/config/address.h"
#include "common/config/cluster_reader.h"
#include "common/config/flags.h"
#include "common/fs/fs_error.h"
#include "deploy/cli/bare_word.h"
#include "deploy/cli/certificate_authority.h"
#include "deploy/cli/finish_command.h"

ABSL_FLAG(std::string, folder, "", "where to put them; may be given without the flag's name");
ABSL_FLAG(std::string, cluster, "", "cluster spec file: JSON or text proto");
ABSL_FLAG(std::string, job_name, "lockstep",
          "name of the job in the certificates: processes of another job are refused");
ABSL_FLAG(int, days, 365, "how long they are valid");

namespace lockstep::deploy {
namespace {

constexpr char kUsage[] =
    "lockstep certificates FOLDER --cluster=FILE\n"
    "\n"
    "Makes an authority (ca.pem, ca.key) and a certificate for each process of the cluster, and\n"
    "for a reader. Run it again before they end: running processes take the new ones.\n"
    "docs/security.md says what goes where.\n";

constexpr int kMaxDays = 3650;

// One file's end of the command that uses it.
void Print(absl::string_view who, const std::string& path) {
  std::printf("%-10s --tls_cert=%s\n", std::string(who).c_str(), path.c_str());
}

class Maker {
 public:
  Maker(CertificateAuthority* authority, std::string folder, std::string job)
      : authority_(authority), folder_(std::move(folder)), job_(std::move(job)) {}

  absl::Status Make(const security::Caller& caller, const std::string& host) {
    const std::string name = absl::StrReplaceAll(security::ToString(caller), {{"/", "-"}});
    const std::string path = absl::StrCat(folder_, "/", name, ".pem");
    LOCKSTEP_RETURN_IF_ERROR(
        authority_->Issue({job_, caller}, host, absl::Hours(24 * absl::GetFlag(FLAGS_days)), path));
    Print(name, path);
    return absl::OkStatus();
  }

  absl::Status MakeServing(security::CallerRole role, std::optional<uint32_t> index,
                           const std::string& address) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
    return Make({.role = role, .index = index}, parsed.host);
  }

 private:
  CertificateAuthority* const authority_;
  const std::string folder_;
  const std::string job_;
};

absl::StatusOr<int> MakeAll() {
  const std::string folder = absl::GetFlag(FLAGS_folder);
  const std::string job = absl::GetFlag(FLAGS_job_name);
  if (folder.empty() || absl::GetFlag(FLAGS_cluster).empty()) {
    return UsageError("Remedy: ./lockstep certificates FOLDER --cluster=FILE");
  }
  if (absl::GetFlag(FLAGS_days) < 1 || absl::GetFlag(FLAGS_days) > kMaxDays) {
    return UsageError(absl::StrCat("--days must be 1 to ", kMaxDays));
  }
  LOCKSTEP_RETURN_IF_ERROR(security::CheckJobName(job));
  LOCKSTEP_ASSIGN_OR_RETURN(const ClusterSpec cluster,
                            ReadClusterFile(absl::GetFlag(FLAGS_cluster)));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return WriteError(folder, "make the folder", errno);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto authority, CertificateAuthority::Open(folder, job));
  std::printf("all        --tls_ca=%s/ca.pem\n", folder.c_str());
  Maker maker(authority.get(), folder, job);
  using security::CallerRole;
  LOCKSTEP_RETURN_IF_ERROR(maker.MakeServing(CallerRole::kChief, std::nullopt, cluster.chief));
  for (uint32_t i = 0; i < cluster.ps.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(maker.MakeServing(CallerRole::kPs, i, cluster.ps[i]));
  }
  for (uint32_t i = 0; i < cluster.workers.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(maker.MakeServing(CallerRole::kWorker, i, cluster.workers[i]));
  }
  LOCKSTEP_RETURN_IF_ERROR(maker.Make({.role = CallerRole::kReader}, ""));
  return 0;
}

}  // namespace
}  // namespace lockstep::deploy

int main(int argc, char** argv) {
  lockstep::OpenStandardStreams();
  using lockstep::deploy::NameBareWord;
  const std::vector<std::string> words =
      NameBareWord({"--folder", "--cluster", "--job_name", "--days"}, argc, argv);
  const std::vector<const char*> arguments = lockstep::deploy::PointersTo(words);
  if (const auto flags =
          lockstep::HandleFlags("lockstep certificates", lockstep::deploy::kUsage,
                                static_cast<int>(arguments.size()), arguments.data());
      flags.exit) {
    return static_cast<int>(flags.code);
  }
  return lockstep::deploy::FinishCommand("lockstep certificates", lockstep::deploy::MakeAll());
}
