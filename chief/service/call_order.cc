#include "chief/service/call_order.h"

#include <algorithm>
#include <utility>

namespace lockstep::chief {

ReplyId CallOrder::NumberReply(const LiveMember& process, absl::Duration now) {
  Replies& replies = replies_[process.worker];
  if (replies.to != process.incarnation) replies = {.to = process.incarnation};
  replies.last_made = now;
  ReplyId id;
  id.set_run(run_);
  id.set_number(++replies.last);
  return id;
}

bool CallOrder::IsOvertaken(const LiveMember& process, const ReplyId& last_reply) const {
  const auto found = replies_.find(process.worker);
  return found != replies_.end() && found->second.to == process.incarnation &&
         NumberOf(last_reply) < found->second.got;
}

bool CallOrder::IsLate(const RegisterTaskRequest& request) const {
  const LiveMember process = ProcessOf(request);
  const auto beating = beating_.find(process.worker);
  const bool beats = beating != beating_.end() && beating->second == process.incarnation;
  return beats || IsOvertaken(process, request.last_reply());
}

bool CallOrder::IsLate(const HeartbeatRequest& request) const {
  return IsOvertaken(ProcessOf(request), request.last_reply());
}

std::optional<absl::Duration> CallOrder::Receive(const LiveMember& process,
                                                 const ReplyId& last_reply) {
  const auto found = replies_.find(process.worker);
  if (found == replies_.end() || found->second.to != process.incarnation) return std::nullopt;
  Replies& replies = found->second;
  const uint64_t number = NumberOf(last_reply);
  if (number == 0 || number > replies.last) return std::nullopt;
  replies.got = std::max(replies.got, number);
  if (number < replies.last) return std::nullopt;
  return replies.last_made;
}

bool CallOrder::ReceiveHeartbeat(const LiveMember& process) {
  return std::exchange(beating_[process.worker], process.incarnation) != process.incarnation;
}

}  // namespace lockstep::chief
