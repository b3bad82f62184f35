#include "chief/loop/disk_thread.h"

#include <utility>

namespace lockstep::chief {

DiskThread::~DiskThread() {
  if (thread_.joinable()) thread_.join();
}

void DiskThread::Run(absl::AnyInvocable<absl::Status()> work, StatusCallback done) {
  if (is_waited_for_) return done(work());
  if (thread_.joinable()) thread_.join();
  thread_ =
      std::thread([executor = executor_, work = std::move(work), done = std::move(done)]() mutable {
        executor->Post(
            [done = std::move(done), status = work()]() mutable { done(std::move(status)); });
      });
}

}  // namespace lockstep::chief
