#include "common/security/method_rules.h"

#include <initializer_list>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/printable.h"

namespace lockstep::security {
namespace {

constexpr size_t kShownPath = 200;

constexpr unsigned Bit(CallerRole role) { return 1U << static_cast<unsigned>(role); }

constexpr unsigned kChief = Bit(CallerRole::kChief);
constexpr unsigned kWorker = Bit(CallerRole::kWorker);
constexpr unsigned kOperator = Bit(CallerRole::kOperator);
constexpr unsigned kPs = Bit(CallerRole::kPs);
constexpr unsigned kAnyRole = kChief | kWorker | kPs | Bit(CallerRole::kReader) | kOperator;

struct Rule {
  absl::string_view method;  // with "/" at its end: every method of the service
  unsigned roles;
};

constexpr Rule kRules[] = {
    {"/lockstep.ParameterServer/GetView", kChief},
    {"/lockstep.ParameterServer/SetView", kChief},
    {"/lockstep.ParameterServer/CreateVariables", kChief},
    {"/lockstep.ParameterServer/Grant", kChief},
    {"/lockstep.ParameterServer/CommitStep", kChief},
    {"/lockstep.ParameterServer/Save", kChief},
    {"/lockstep.ParameterServer/ReleaseSnapshot", kChief},
    {"/lockstep.ParameterServer/Finish", kChief},
    {"/lockstep.ParameterServer/RenewLease", kChief},
    {"/lockstep.ParameterServer/WatchCommand", kChief},
    {"/lockstep.ParameterServer/Push", kWorker | kPs},
    {"/lockstep.ParameterServer/Pull", kWorker},
    {"/lockstep.ParameterServer/DequeueToken", kWorker},
    {"/lockstep.ParameterServer/StoreVersion", kWorker},
    {"/lockstep.ParameterServer/AttachMemory", kWorker | kPs},
    {"/lockstep.ParameterServer/PutState", kPs},
    {"/lockstep.Chief/RegisterTask", kWorker},
    {"/lockstep.Chief/Heartbeat", kWorker},
    {"/lockstep.Chief/ReportError", kWorker},
    {"/lockstep.Peer/Compare", kWorker},
    {"/lockstep.Peer/Send", kWorker},
    {"/lockstep.Peer/Probe", kWorker},
    {"/lockstep.Peer/AttachMemory", kWorker},
    {"/lockstep.Peer/ReadState", kWorker},
    {"/lockstep.JobControl/Stop", kOperator},
    {"/lockstep.StatusService/GetStatus", kAnyRole},
    // They show the interface, and addresses of connections.
    {"/grpc.reflection.v1alpha.ServerReflection/", kAnyRole},
    {"/grpc.channelz.v1.Channelz/", kAnyRole},
};

bool Names(const Rule& rule, absl::string_view method) {
  return absl::EndsWith(rule.method, "/") ? absl::StartsWith(method, rule.method)
                                          : method == rule.method;
}

}  // namespace

bool IsOpenToAll(absl::string_view method) {
  return method == "/grpc.health.v1.Health/Check" || method == "/grpc.health.v1.Health/Watch";
}

absl::Status CheckMethod(const Caller& caller, absl::string_view method) {
  for (const Rule& rule : kRules) {
    if (Names(rule, method) && (rule.roles & Bit(caller.role)) != 0) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat(ToString(caller), " may not call ", Printable(method, kShownPath),
                   ". Remedy: docs/security.md lists which role may call which method"));
}

}  // namespace lockstep::security
