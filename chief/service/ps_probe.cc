#include "chief/service/ps_probe.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/ids.h"

namespace lockstep::chief {

std::string DescribePending(int shard, const absl::StatusOr<ProcessStatus>& status) {
  if (!status.ok()) return "";
  std::vector<std::string> variables;
  for (const VariableStatus& variable : status->shard().pending()) {
    std::string text =
        absl::StrCat(variable.name(), " (", variable.have(), " of ", variable.required());
    if (variable.from_size() > 0) {
      absl::StrAppend(&text, ", from worker ", absl::StrJoin(variable.from(), ", "));
    }
    variables.push_back(absl::StrCat(text, ")"));
  }
  if (variables.empty()) return "";
  return absl::StrCat("ps ", shard, " waits for ", absl::StrJoin(variables, ", "));
}

PsProbe::PsProbe(std::vector<std::string> addresses, Fetch fetch, Executor* executor)
    : addresses_(std::move(addresses)), fetch_(std::move(fetch)), executor_(executor) {}

PsProbe::~PsProbe() {
  if (thread_.joinable()) thread_.join();
}

void PsProbe::Start(std::function<void(PsPending)> done) {
  if (running_) return;
  running_ = true;
  if (thread_.joinable()) thread_.join();
  thread_ = std::thread([this, done = std::move(done)] {
    std::vector<std::string> parts;
    PsPending pending;
    for (size_t shard = 0; shard < addresses_.size(); ++shard) {
      const absl::StatusOr<ProcessStatus> status = fetch_(addresses_[shard]);
      std::string part = DescribePending(static_cast<int>(shard), status);
      if (!part.empty()) parts.push_back(std::move(part));
      if (status.ok() && shard == kStepShard) {
        pending.waiting_for_tokens = status->shard().waiting_dequeues();
      }
    }
    pending.text = absl::StrJoin(parts, "; ");
    executor_->Post([this, done, pending = std::move(pending)] {
      running_ = false;
      done(pending);
    });
  });
}

}  // namespace lockstep::chief
