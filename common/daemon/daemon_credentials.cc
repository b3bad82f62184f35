#include "common/daemon/daemon_credentials.h"

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

rpc::PeerRoles::Map RolesIn(const ClusterSpec& cluster) {
  rpc::PeerRoles::Map roles;
  for (const Role role : {Role::kPs, Role::kWorker, Role::kChief}) {
    for (int i = 0; i < cluster.Count(role); ++i) {
      roles.emplace(cluster.AddressOf(role, i), CallerOf(role, i));
    }
  }
  return roles;
}

}  // namespace

absl::StatusOr<DaemonCredentials> DaemonCredentials::Load(const TaskConfig& task,
                                                          const std::string& listening) {
  const std::string token_file = absl::GetFlag(FLAGS_token_file);
  const security::TlsFiles files{.certificate = absl::GetFlag(FLAGS_tls_cert),
                                 .key = absl::GetFlag(FLAGS_tls_key),
                                 .authorities = absl::GetFlag(FLAGS_tls_ca)};
  const security::Caller self = CallerOf(task.role, task.index);
  DaemonCredentials loaded;
  if (!files.empty()) {
    loaded.peers_ = std::make_shared<rpc::PeerRoles>();
    LOCKSTEP_ASSIGN_OR_RETURN(
        loaded.credentials_,
        rpc::MakeTlsCredentials({.files = files, .token_file = token_file, .peers = loaded.peers_},
                                self));
  } else if (!token_file.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(loaded.credentials_, rpc::MakeTokenCredentials(token_file, self));
    LOCKSTEP_RETURN_IF_ERROR(loaded.credentials_->CheckAddress(listening));
  } else {
    log::Warning(absl::StrCat("whoever reaches ", listening,
                              " may read and change the job. Remedy: --token_file=FILE on all "
                              "processes of one machine, or --tls_cert=FILE (docs/security.md)"));
  }
  LOCKSTEP_RETURN_IF_ERROR(loaded.Admit(task.cluster));
  return loaded;
}

absl::Status DaemonCredentials::Admit(const ClusterSpec& cluster) const {
  if (credentials_ == nullptr) return absl::OkStatus();
  rpc::PeerRoles::Map roles = RolesIn(cluster);
  for (const auto& [address, role] : roles) {
    LOCKSTEP_RETURN_IF_ERROR(credentials_->CheckAddress(address));
  }
  if (peers_ != nullptr) peers_->Replace(std::move(roles));
  return absl::OkStatus();
}

}  // namespace lockstep
