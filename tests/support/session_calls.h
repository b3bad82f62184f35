// A shard session for one thread, which waits for the result of each call.
#pragma once

#include <utility>

#include "common/base/await.h"
#include "common/base/callback.h"
#include "common/client/shard_session.h"
#include "tests/support/thread_timer.h"

namespace lockstep {

inline SessionOptions SessionOf(const WorkerIdentity& worker) {
  SessionOptions options;
  options.identity = worker;
  return options;
}

struct OwnTimer {
  ThreadTimer timer;
};

class SessionWithTimer : private OwnTimer, public ShardSession {
 public:
  SessionWithTimer(const SessionOptions& options, TensorTransport* transport)
      : ShardSession(options, transport, &timer) {}
};

inline absl::StatusOr<GlobalStep> FetchValues(ShardSession* session, int64_t version) {
  return Await<GlobalStep>([&](Callback<GlobalStep> done) {
    session->Fetch(GlobalStep(version), FetchKind::kPresent, std::move(done));
  });
}

inline absl::StatusOr<PushSummary> EndGradient(ShardSession* session) {
  return Await<PushSummary>(
      [&](Callback<PushSummary> done) { session->EndStep(DequeueSeq(), std::move(done)); });
}

}  // namespace lockstep
