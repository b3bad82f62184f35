#include "worker/step/timeline.h"

#include <fcntl.h>

#include <cerrno>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fs/fs_error.h"

namespace lockstep::worker {
namespace {

constexpr char kTimelineHeader[] =
    "step,token_us,variables_us,first_gradient_us,last_gradient_us,pushed_us\n";
constexpr size_t kTimelineBuffer = 64 * 1024;
constexpr size_t kLongestLine = 6 * 21;  // six numbers of 64 bits, each with what follows it
constexpr mode_t kTimelineMode = 0644;

}  // namespace

absl::StatusOr<std::unique_ptr<Timeline>> Timeline::Create(const std::string& path,
                                                           const Clock* clock) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kTimelineMode);
  if (fd < 0) return WriteError(path, "create", errno);
  return std::unique_ptr<Timeline>(new Timeline(path, FileDescriptor(fd), clock));
}

Timeline::Timeline(std::string path, FileDescriptor file, const Clock* clock)
    : path_(std::move(path)), file_(std::move(file)), clock_(clock) {
  lines_.reserve(kTimelineBuffer);
  lines_ = kTimelineHeader;
}

void Timeline::Started(GlobalStep step) {
  step_ = step;
  token_ = clock_->Monotonic();
  first_gradient_ = absl::ZeroDuration();
}

void Timeline::HaveVariables() { variables_ = clock_->Monotonic(); }

void Timeline::HaveGradient() {
  last_gradient_ = clock_->Monotonic();
  if (first_gradient_ == absl::ZeroDuration()) first_gradient_ = last_gradient_;
}

void Timeline::Pushed(absl::Duration at) {
  if (lines_.size() + kLongestLine > kTimelineBuffer) Flush().IgnoreError();
  const auto micros = [](absl::Duration time) { return absl::ToInt64Microseconds(time); };
  absl::StrAppend(&lines_, step_.value(), ",", micros(token_), ",");
  absl::StrAppend(&lines_, micros(variables_), ",", micros(first_gradient_), ",");
  absl::StrAppend(&lines_, micros(last_gradient_), ",", micros(at), "\n");
}

absl::Status Timeline::Flush() {
  if (status_.ok()) {
    const int error_number = file_.Write(std::as_bytes(std::span<const char>(lines_)));
    if (error_number != 0) status_ = WriteError(path_, "write", error_number);
  }
  lines_.clear();
  return status_;
}

}  // namespace lockstep::worker
