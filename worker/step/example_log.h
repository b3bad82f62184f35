// ExampleLog writes which examples each tower took in each step. The file has comma-separated
// values, with a line for each batch that was trained on:
//
//   step,tower,examples
//
// The numbers of the examples are separated by spaces. An example's number is counted from 0
// through the training files that the worker reads.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "common/fs/file_descriptor.h"
#include "worker/data/batch.h"

namespace lockstep::worker {

// Thread-safe. Each step is written at once: a worker that is killed loses no line of a step that
// it has recorded.
class ExampleLog {
 public:
  // Replaces `path`.
  static absl::StatusOr<std::unique_ptr<ExampleLog>> Create(const std::string& path);

  // Writes the batches of the towers from number `first_tower` on; nothing after an error.
  void Record(GlobalStep step, int first_tower, std::span<const Batch> batches);

  // The first error of all writing.
  absl::Status status() const;

 private:
  ExampleLog(std::string path, FileDescriptor file);
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const FileDescriptor file_;
  mutable absl::Mutex mutex_;
  std::string lines_ ABSL_GUARDED_BY(mutex_);  // of one step; keeps its memory
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker
