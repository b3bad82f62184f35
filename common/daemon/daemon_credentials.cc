#include "common/daemon/daemon_credentials.h"

#include <map>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "common/rpc/tls_credentials.h"
#include "common/security/caller.h"

ABSL_FLAG(std::string, token_file, "",
          "file with the token of the job (./lockstep token FILE): only callers that have it are "
          "served; without TLS all processes on one machine");
ABSL_FLAG(std::string, tls_cert, "",
          "PEM file with the certificate of this process (./lockstep certificates): connections "
          "are encrypted, and without --token_file only callers with a certificate of the job "
          "are served");
ABSL_FLAG(std::string, tls_key, "", "PEM file with the key of --tls_cert; default: the same file");
ABSL_FLAG(std::string, tls_ca, "",
          "PEM file with the authorities that sign the job's certificates");

namespace lockstep {
namespace {

security::Caller CallerOf(Role role, int index) {
  if (role == Role::kChief) return {.role = security::CallerRole::kChief};
  return {.role = role == Role::kPs ? security::CallerRole::kPs : security::CallerRole::kWorker,
          .index = static_cast<uint32_t>(index)};
}

std::map<std::string, security::Caller> PeersOf(const ClusterSpec& cluster) {
  std::map<std::string, security::Caller> peers;
  for (const Role role : {Role::kPs, Role::kWorker, Role::kChief}) {
    for (int i = 0; i < cluster.Count(role); ++i) {
      peers.emplace(cluster.AddressOf(role, i), CallerOf(role, i));
    }
  }
  return peers;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const rpc::Credentials>> LoadCredentials(
    const TaskConfig& task, const std::string& listening) {
  const std::string token_file = absl::GetFlag(FLAGS_token_file);
  const security::TlsFiles files{.certificate = absl::GetFlag(FLAGS_tls_cert),
                                 .key = absl::GetFlag(FLAGS_tls_key),
                                 .authorities = absl::GetFlag(FLAGS_tls_ca)};
  const security::Caller self = CallerOf(task.role, task.index);
  if (!files.empty()) {
    return rpc::MakeTlsCredentials(
        {.files = files, .token_file = token_file, .peers = PeersOf(task.cluster)}, self);
  }
  if (token_file.empty()) {
    log::Warning(absl::StrCat("whoever reaches ", listening,
                              " may read and change the job. Remedy: --token_file=FILE on all "
                              "processes of one machine, or --tls_cert=FILE (docs/security.md)"));
    return nullptr;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<const rpc::Credentials> credentials,
                            rpc::MakeTokenCredentials(token_file, self));
  LOCKSTEP_RETURN_IF_ERROR(credentials->CheckAddress(listening));
  for (const auto& [address, peer] : PeersOf(task.cluster)) {
    LOCKSTEP_RETURN_IF_ERROR(credentials->CheckAddress(address));
  }
  return credentials;
}

}  // namespace lockstep
