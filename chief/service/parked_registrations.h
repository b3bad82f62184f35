// Registrations that wait to be answered, in the order in which they came.
//
// Lives on the executor's thread.
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/service/answer.h"
#include "proto/chief.pb.h"

namespace lockstep::chief {

struct ParkedRegistration {
  RegisterTaskRequest request;
  absl::Duration came;  // of the chief's clock
  Answer<RegisterTaskReply> answer;
};

class ParkedRegistrations {
 public:
  // nullopt: the call goes on waiting.
  using Outcome = std::optional<absl::StatusOr<RegisterTaskReply>>;
  using Attempt = std::function<Outcome(const ParkedRegistration&)>;

  size_t size() const { return calls_.size(); }
  void Add(ParkedRegistration call) { calls_.push_back(std::move(call)); }

  // Tries to answer each. An attempt may call Retry: it then tries those that this one has tried
  // before and that go on waiting.
  void Retry(const Attempt& attempt) {
    for (ParkedRegistration& call : std::exchange(calls_, {})) {
      Outcome reply = attempt(call);
      reply.has_value() ? call.answer(*std::move(reply)) : calls_.push_back(std::move(call));
    }
  }

 private:
  std::list<ParkedRegistration> calls_;
};

}  // namespace lockstep::chief
