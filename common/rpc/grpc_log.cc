#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/printable.h"
#include "common/log/log.h"
#include "common/log/throttle.h"

namespace lockstep::rpc {
namespace {

constexpr size_t kMaxLine = 300;

class ThrottledLog {
 public:
  void Write(absl::string_view message) {
    const std::optional<std::string> line = Admit(Printable(message, kMaxLine));
    if (line.has_value()) log::Warning(absl::StrCat("gRPC: ", *line));
  }

 private:
  std::optional<std::string> Admit(absl::string_view line) {
    absl::MutexLock lock(&mutex_);
    return throttle_.Admit(line, Clock::Real()->Monotonic());
  }

  absl::Mutex mutex_;
  log::Throttle throttle_ ABSL_GUARDED_BY(mutex_);
};

void Write(gpr_log_func_args* args) {
  static ThrottledLog* const log = new ThrottledLog;
  log->Write(args->message);
}

}  // namespace

void SendGrpcLog() { gpr_set_log_function(Write); }

}  // namespace lockstep::rpc
