#include "common/rpc/caller_check.h"

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "common/log/throttle.h"
#include "common/rpc/bearer.h"
#include "common/rpc/grpc_status.h"
#include "common/security/caller.h"
#include "common/security/method_rules.h"

namespace lockstep::rpc {
namespace {

constexpr char kPath[] = ":path";

absl::string_view View(grpc::string_ref text) { return {text.data(), text.size()}; }

// Without its scheme; empty where there is none, or more than one: no two readers may then take
// different ones.
template <typename Metadata>
absl::string_view CredentialIn(const Metadata& metadata) {
  if (metadata.count(kAuthorization) != 1) return "";
  const auto found = metadata.find(kAuthorization);
  absl::string_view value = View(found->second);
  return absl::ConsumePrefix(&value, kBearer) ? value : "";
}

class CallerCheck final : public grpc::AuthMetadataProcessor {
 public:
  explicit CallerCheck(security::JobToken token) : token_(std::move(token)) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext*, OutputMetadata*,
                       OutputMetadata*) override {
    const auto path = metadata.find(kPath);
    const absl::string_view method = path == metadata.end() ? "" : View(path->second);
    const absl::Status status = Check(method, CredentialIn(metadata));
    if (!status.ok()) Log(status);
    return ToGrpc(status);
  }

 private:
  absl::Status Check(absl::string_view method, absl::string_view credential) const {
    if (security::IsOpenToAll(method)) return absl::OkStatus();
    if (credential.empty()) {
      return absl::UnauthenticatedError(
          "the call has no credential. Remedy: --token_file=FILE with the token of the job");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const security::Caller caller, token_.Verify(credential));
    return security::CheckMethod(caller, method);
  }

  void Log(const absl::Status& refusal) {
    std::optional<std::string> line;
    {
      absl::MutexLock lock(&mutex_);
      line = refusals_.Admit(absl::StrCat("refused a call: ", refusal.message()),
                             Clock::Real()->Monotonic());
    }
    if (line.has_value()) log::Warning(*line);
  }

  const security::JobToken token_;
  absl::Mutex mutex_;
  log::Throttle refusals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<grpc::AuthMetadataProcessor> MakeCallerCheck(security::JobToken token) {
  return std::make_shared<CallerCheck>(std::move(token));
}

absl::Status CheckSpeaker(const grpc::ServerContext& context, std::optional<uint32_t> speaker) {
  if (!speaker.has_value()) return absl::OkStatus();
  const absl::string_view credential = CredentialIn(context.client_metadata());
  if (credential.empty()) return absl::OkStatus();
  const auto caller = security::ParseCaller(credential.substr(0, credential.find(':')));
  if (!caller.has_value() || !caller->index.has_value() || *caller->index == *speaker) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat(security::ToString(*caller), " may not speak for worker ", *speaker));
}

}  // namespace lockstep::rpc
