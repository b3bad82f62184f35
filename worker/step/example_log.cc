#include "worker/step/example_log.h"

#include <fcntl.h>

#include <cerrno>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/fs/fs_error.h"

namespace lockstep::worker {
namespace {

constexpr char kExampleHeader[] = "step,tower,examples\n";
constexpr mode_t kExampleLogMode = 0644;

}  // namespace

absl::StatusOr<std::unique_ptr<ExampleLog>> ExampleLog::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kExampleLogMode);
  if (fd < 0) return WriteError(path, "create", errno);
  std::unique_ptr<ExampleLog> log(new ExampleLog(path, FileDescriptor(fd)));
  {
    absl::MutexLock lock(&log->mutex_);
    log->lines_ = kExampleHeader;
    log->Write();
  }
  LOCKSTEP_RETURN_IF_ERROR(log->status());
  return log;
}

ExampleLog::ExampleLog(std::string path, FileDescriptor file)
    : path_(std::move(path)), file_(std::move(file)) {}

void ExampleLog::Record(GlobalStep step, int first_tower, std::span<const Batch> batches) {
  absl::MutexLock lock(&mutex_);
  lines_.clear();
  int tower = first_tower;
  for (const Batch& batch : batches) {
    absl::StrAppend(&lines_, step.value(), ",", tower++, ",");
    const char* separator = "";
    for (const int64_t number : batch.example_numbers()) {
      absl::StrAppend(&lines_, separator, number);
      separator = " ";
    }
    lines_ += '\n';
  }
  Write();
}

void ExampleLog::Write() {
  if (!status_.ok()) return;
  const int error_number = file_.Write(std::as_bytes(std::span<const char>(lines_)));
  if (error_number != 0) status_ = WriteError(path_, "write", error_number);
}

absl::Status ExampleLog::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

}  // namespace lockstep::worker
