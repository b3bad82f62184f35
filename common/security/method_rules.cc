#include "common/security/method_rules.h"

#include <google/protobuf/descriptor.h>

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "proto/callers.pb.h"
#include "proto/chief.pb.h"
#include "proto/job_control.pb.h"
#include "proto/peer.pb.h"
#include "proto/ps.pb.h"
#include "proto/status.pb.h"

namespace lockstep::security {
namespace {

constexpr size_t kShownPath = 200;

// gRPC's own, which show the interface, and addresses of connections.
constexpr absl::string_view kServicesForAnyRole[] = {
    "/grpc.reflection.v1alpha.ServerReflection/",
    "/grpc.channelz.v1.Channelz/",
};

constexpr unsigned Bit(Callers::Role role) { return 1U << static_cast<unsigned>(role); }

unsigned Bit(CallerRole role) {
  switch (role) {
    case CallerRole::kChief:
      return Bit(Callers::CHIEF);
    case CallerRole::kPs:
      return Bit(Callers::PS);
    case CallerRole::kWorker:
      return Bit(Callers::WORKER);
    case CallerRole::kReader:
      return Bit(Callers::READER);
    case CallerRole::kOperator:
      return Bit(Callers::OPERATOR);
  }
  return 0;
}

unsigned RolesOf(const google::protobuf::MethodOptions& options) {
  unsigned roles = 0;
  for (int i = 0; i < options.ExtensionSize(callers); ++i) {
    roles |= Bit(options.GetExtension(callers, i));
  }
  return roles;
}

using RolesByPath = absl::flat_hash_map<std::string, unsigned>;

// Of all services, also those that this process does not serve: who may call them is told so.
RolesByPath ReadRoles() {
  RolesByPath roles;
  for (const google::protobuf::Descriptor* message :
       {PushRequest::descriptor(), HeartbeatRequest::descriptor(), SendRequest::descriptor(),
        StopRequest::descriptor(), ProcessStatus::descriptor()}) {
    const google::protobuf::ServiceDescriptor* service = message->file()->service(0);
    for (int i = 0; i < service->method_count(); ++i) {
      const auto& method = *service->method(i);
      const std::string path = absl::StrCat("/", service->full_name(), "/", method.name());
      roles[path] = RolesOf(method.options());
    }
  }
  return roles;
}

bool IsForAnyRole(absl::string_view path) {
  for (const absl::string_view service : kServicesForAnyRole) {
    if (absl::StartsWith(path, service)) return true;
  }
  return false;
}

}  // namespace

bool IsOpenToAll(absl::string_view method) {
  return method == "/grpc.health.v1.Health/Check" || method == "/grpc.health.v1.Health/Watch";
}

absl::Status CheckMethod(const Caller& caller, absl::string_view method) {
  static const auto& roles = *new RolesByPath(ReadRoles());
  const auto rule = roles.find(method);
  if (rule != roles.end() && (rule->second & Bit(caller.role)) != 0) return absl::OkStatus();
  if (IsForAnyRole(method)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(ToString(caller), " may not call ", Printable(method, kShownPath),
                   ". Remedy: docs/security.md lists which role may call which method"));
}

}  // namespace lockstep::security
