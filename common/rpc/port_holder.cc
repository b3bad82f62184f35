#include "common/rpc/port_holder.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/rpc/credentials.h"
#include "proto/status.grpc.pb.h"

namespace lockstep::rpc {
namespace {

constexpr absl::string_view kChief = "chief";

}  // namespace

absl::Status DescribePortHolder(const std::string& address, const std::string& owner,
                                const Credentials* credentials) {
  grpc::ClientContext context;
  if (credentials != nullptr) credentials->AddTo(&context);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
  ProcessStatus holder;
  const auto stub = StatusService::NewStub(MakeChannel(address, credentials));
  const grpc::Status asked = stub->GetStatus(&context, GetStatusRequest(), &holder);
  if (asked.error_code() == grpc::StatusCode::UNAUTHENTICATED) {
    return absl::UnavailableError(
        absl::StrCat("address ", address, " of ", owner,
                     " is in use by a task that has another --token_file or certificate: of "
                     "another job, or of this one started otherwise. Remedy: end it, or give ",
                     owner, " another port"));
  }
  if (!asked.ok()) {
    return absl::UnavailableError(absl::StrCat(
        "address ", address, " of ", owner,
        " is in use by a process that did not answer as a task of this job: another program, a "
        "task with other TLS flags, or one that hangs. Remedy: ss -ltnp names it; end it, or give ",
        owner, " another port"));
  }
  const bool is_chief = holder.role() == kChief;
  // The only chief of a cluster has no index in its name, each of several has one.
  const std::string name = is_chief && owner == kChief
                               ? std::string(kChief)
                               : absl::StrCat(holder.role(), " ", holder.task());
  const std::string where = absl::StrCat("pid ", holder.pid(), " on host ", holder.host());
  if (name == owner) {
    return absl::FailedPreconditionError(absl::StrCat(
        owner, " is already running as ", where, " at ", address,
        is_chief ? ". Remedy: end that one, or this one is not needed"
                 : ". Remedy: give this process another --task_index, or end that one"));
  }
  return absl::UnavailableError(absl::StrCat("address ", address, " of ", owner, " is in use by ",
                                             name, ", ", where, ". Remedy: end it, or give ", owner,
                                             " another port"));
}

}  // namespace lockstep::rpc
