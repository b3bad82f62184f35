#include "deploy/cli/job_certificates.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/remedy.h"
#include "common/base/status_macros.h"
#include "common/config/address.h"
#include "common/fs/file_lock.h"
#include "common/fs/fs_error.h"
#include "common/fs/path.h"
#include "common/security/role_uri.h"
#include "deploy/cli/certificate_authority.h"

namespace lockstep::deploy {
namespace {

using security::Caller;
using security::CallerRole;

// Who has a certificate, and the addresses where it serves.
using Holder = std::pair<Caller, std::vector<std::string>>;

std::vector<Holder> HoldersIn(const ClusterSpec& cluster) {
  std::vector<Holder> holders = {{{.role = CallerRole::kChief}, cluster.chiefs()}};
  const auto add = [&holders](CallerRole role, const std::vector<std::string>& addresses) {
    for (uint32_t i = 0; i < addresses.size(); ++i) {
      holders.push_back({{.role = role, .index = i}, {addresses[i]}});
    }
  };
  add(CallerRole::kPs, cluster.ps);
  add(CallerRole::kWorker, cluster.workers);
  for (const CallerRole role : {CallerRole::kReader, CallerRole::kOperator}) {
    holders.push_back({{.role = role}, {}});
  }
  return holders;
}

// Of this user alone: it holds keys.
absl::Status MakeFolder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  const int error = errno;
  return AddRemedy(WriteError(folder, "make the folder", error),
                   error == ENOENT ? absl::StrCat("make ", FolderOf(folder), " first")
                                   : "name a folder where this user may write");
}

}  // namespace

std::string AuthorityPath(const std::string& folder) { return JoinPath(folder, kAuthorityFile); }

std::string CertificatePath(const std::string& folder, absl::string_view task) {
  return JoinPath(folder, absl::StrCat(task, ".pem"));
}

absl::StatusOr<std::vector<TaskCertificate>> MakeCertificates(const std::string& folder,
                                                              const ClusterSpec& cluster,
                                                              const std::string& job,
                                                              absl::Duration validity) {
  if (!job.empty()) LOCKSTEP_RETURN_IF_ERROR(security::CheckJobName(job));
  LOCKSTEP_RETURN_IF_ERROR(MakeFolder(folder));
  // Of two that make an authority at once one would sign with a key that the other replaces.
  const auto lock = FileLock::TryAcquire(JoinPath(folder, "LOCK"),
                                         absl::StrCat("./lockstep certificates, pid ", ::getpid()));
  if (absl::IsAlreadyExists(lock.status())) {
    return AddRemedy(lock.status(), "the same command again when that one has ended");
  }
  if (!lock.ok()) {
    return AddRemedy(lock.status(),
                     "name a folder where this user may write, on a file system with flock");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto authority, CertificateAuthority::Open(folder, job));
  std::vector<TaskCertificate> made;
  for (const auto& [caller, addresses] : HoldersIn(cluster)) {
    std::vector<std::string> hosts;
    for (const std::string& address : addresses) {
      LOCKSTEP_ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
      hosts.push_back(parsed.host);
    }
    const std::string task = absl::StrReplaceAll(security::ToString(caller), {{"/", "-"}});
    const std::string path = CertificatePath(folder, task);
    LOCKSTEP_RETURN_IF_ERROR(authority->Issue(caller, hosts, validity, path));
    made.push_back({task, path});
  }
  return made;
}

}  // namespace lockstep::deploy
