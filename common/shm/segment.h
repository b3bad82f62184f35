// Memory that two processes of one machine see. It has no name and no file: it is gone when the
// last process that has it is, however that ended.
//
// One side makes a segment and writes it, the other maps it for reading. Its size can never change
// again, so no peer can take pages away from under a reader, and only its maker can write there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/fs/file_descriptor.h"

namespace lockstep::shm {

// Constant; what the bytes say is between the two sides. Every tensor in it keeps it alive.
class Segment {
 public:
  // Zeroed memory, all of it there from the beginning, in huge pages where the system gives some.
  // RESOURCE_EXHAUSTED: the machine or the control group has not so much (AvailableMemory). `name`
  // is seen in /proc/PID/maps.
  static absl::StatusOr<std::shared_ptr<Segment>> Create(const char* name, uint64_t bytes);
  // The same, before TakeMemory: it may be written, and nobody can map it.
  static absl::StatusOr<std::shared_ptr<Segment>> Reserve(const char* name, uint64_t bytes);
  // To be called once. It writes all of the memory, and takes as long. Errors as Create.
  absl::Status TakeMemory();
  // Maps a peer's segment for reading. It costs page tables alone. INVALID_ARGUMENT: no segment;
  // one whose size could still change; one whose maker has not taken all of its memory, because its
  // readers would take the rest.
  static absl::StatusOr<std::shared_ptr<const Segment>> Map(const FileDescriptor& descriptor);
  ~Segment();

  std::span<std::byte> bytes() { return {data_, size_}; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // To be handed over; null of a segment that was mapped.
  const FileDescriptor& descriptor() const { return descriptor_; }

 private:
  Segment(FileDescriptor descriptor, std::byte* data, uint64_t size)
      : descriptor_(std::move(descriptor)), data_(data), size_(size) {}

  const FileDescriptor descriptor_;
  std::byte* const data_;
  const uint64_t size_;
};

}  // namespace lockstep::shm
