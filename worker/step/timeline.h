// Timeline writes when each phase of a step ended. The file has comma-separated values, with a line
// for each gradient of this replica. Times are microseconds of the clock's Monotonic().
//
//   step,token_us,variables_us,first_gradient_us,last_gradient_us,pushed_us
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/fs/file_descriptor.h"

namespace lockstep::worker {

// Used by one thread at a time. Lines are gathered in memory and written in large pieces; a step
// allocates nothing.
class Timeline {
 public:
  // Replaces `path`. The clock outlives the timeline.
  static absl::StatusOr<std::unique_ptr<Timeline>> Create(const std::string& path,
                                                          const Clock* clock);

  // Called in this order. A step without a call of Pushed leaves no line.
  void Started(GlobalStep step);  // its token is here
  void HaveVariables();
  void HaveGradient();             // called for each trained variable
  void Pushed(absl::Duration at);  // everything had been judged, by the clock's Monotonic()

  // Writes the buffered lines. Returns the first error of all writing; lines after it are dropped.
  absl::Status Flush();

 private:
  Timeline(std::string path, FileDescriptor file, const Clock* clock);

  const std::string path_;
  const FileDescriptor file_;
  const Clock* const clock_;
  std::string lines_;
  absl::Status status_;
  GlobalStep step_;
  absl::Duration token_;
  absl::Duration variables_;
  absl::Duration first_gradient_;
  absl::Duration last_gradient_;
};

}  // namespace lockstep::worker
