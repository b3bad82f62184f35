#include "common/rpc/role_verifier.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/grpc_status.h"
#include "common/security/role_uri.h"

namespace lockstep::rpc {
namespace {

using security::Caller;

bool Serves(const Caller& caller) {
  return caller.role == security::CallerRole::kChief || caller.role == security::CallerRole::kPs ||
         caller.role == security::CallerRole::kWorker;
}

absl::Status CheckServer(const std::vector<std::string>& uris, const std::string& job,
                         const std::optional<Caller>& expected) {
  LOCKSTEP_ASSIGN_OR_RETURN(const security::RoleUri role, security::RoleOf(uris));
  LOCKSTEP_RETURN_IF_ERROR(security::CheckJob(role, job));
  const bool is_good = expected.has_value() ? Proves(role.caller, *expected) : Serves(role.caller);
  if (is_good) return absl::OkStatus();
  return absl::UnauthenticatedError(absl::StrCat(
      "the server's certificate is of ", security::ToString(role.caller), ", expected ",
      expected.has_value() ? security::ToString(*expected) : "chief, ps or worker"));
}

}  // namespace

bool RoleVerifier::Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
                          std::function<void(grpc::Status)>, grpc::Status* sync_status) {
  std::vector<std::string> uris;
  for (const grpc::string_ref& uri : request->uri_names())
    uris.emplace_back(uri.data(), uri.size());
  *sync_status = ToGrpc(CheckServer(uris, job_, expected_));
  return true;
}

}  // namespace lockstep::rpc
