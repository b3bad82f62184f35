// A chief that answers from a script, on threads of its own or at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/client/chief_client.h"
#include "tests/support/fake_service_client.h"

namespace lockstep::worker {

inline ReplyId ReplyIdOf(uint64_t run, uint64_t number) {
  ReplyId id;
  id.set_run(run);
  id.set_number(number);
  return id;
}

class FakeChief final : public test::FakeServiceClient<ChiefService> {
 public:
  FakeChief() {
    Handle(kRegisterTask, std::bind_front(&FakeChief::RegisterTask, this));
    Handle(kHeartbeat, std::bind_front(&FakeChief::Heartbeat, this));
    Handle(kReportError,
           [this](const ReportErrorRequest& request, Callback<ReportErrorReply> done) {
             reports.push_back(request);
             if (reports.size() <= failing_reports) return done(absl::UnavailableError("away"));
             done(ReportErrorReply());
           });
  }

  // Answers at once with the next scripted reply; the last one repeats.
  std::deque<absl::StatusOr<RegisterTaskReply>> registrations;
  int registrations_seen = 0;
  RegisterTaskRequest last_registration;

  // Answers so many UNAVAILABLE, and the others OK.
  size_t failing_reports = 0;
  std::vector<ReportErrorRequest> reports;  // all that came

  // Waits for a heartbeat and returns its request.
  HeartbeatRequest NextHeartbeat() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &FakeChief::HasUnseen));
    return parked_[seen_++].first;
  }

  // Answers the oldest parked heartbeat. After the end of the job those that come are answered at
  // once.
  void Answer(absl::StatusOr<HeartbeatReply> reply) { Answer(0, std::move(reply)); }
  // Answers the second one, and leaves the oldest parked.
  void AnswerSecond(absl::StatusOr<HeartbeatReply> reply) { Answer(1, std::move(reply)); }

  // Answers every heartbeat to come at once with this end of the job.
  void EndJob(HeartbeatReply end) {
    absl::MutexLock lock(&mutex_);
    end_ = std::move(end);
  }

  // One waits for an answer.
  bool HasHeartbeat() {
    absl::MutexLock lock(&mutex_);
    return HasParked();
  }

  // Those that came after the end.
  std::vector<HeartbeatRequest> after_end() {
    absl::MutexLock lock(&mutex_);
    return after_end_;
  }

 private:
  void Answer(size_t index, absl::StatusOr<HeartbeatReply> reply) {
    Callback<HeartbeatReply> done;
    {
      absl::MutexLock lock(&mutex_);
      const auto has_parked = [&] { return parked_.size() > index; };
      mutex_.Await(absl::Condition(&has_parked));
      const auto parked = parked_.begin() + static_cast<std::ptrdiff_t>(index);
      done = std::move(parked->second);
      parked_.erase(parked);
      if (reply.ok() && (reply->finish() || !reply->fail().empty())) end_ = *reply;
      if (seen_ > index) --seen_;
    }
    done(std::move(reply));
  }

  void RegisterTask(const RegisterTaskRequest& request, Callback<RegisterTaskReply> done) {
    ++registrations_seen;
    last_registration = request;
    absl::StatusOr<RegisterTaskReply> reply = registrations.front();
    if (registrations.size() > 1) registrations.pop_front();
    done(std::move(reply));
  }

  void Heartbeat(const HeartbeatRequest& request, Callback<HeartbeatReply> done) {
    std::optional<HeartbeatReply> end;
    {
      absl::MutexLock lock(&mutex_);
      end = end_;
      if (end.has_value()) {
        after_end_.push_back(request);
      } else {
        parked_.emplace_back(request, std::move(done));
      }
    }
    if (end.has_value()) done(*end);
  }

  bool HasUnseen() const { return seen_ < parked_.size(); }
  bool HasParked() const { return !parked_.empty(); }

  absl::Mutex mutex_;
  std::deque<std::pair<HeartbeatRequest, Callback<HeartbeatReply>>> parked_;
  size_t seen_ = 0;  // of parked_, from the front
  std::optional<HeartbeatReply> end_;
  std::vector<HeartbeatRequest> after_end_;
};

}  // namespace lockstep::worker
