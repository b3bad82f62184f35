#include "worker/device/host_stream.h"

#include <cstring>

namespace lockstep::worker {

HostTask HostStream::CopyTask(void* to, const void* from, size_t bytes) {
  const auto copy = [](void* object, const void* argument, uint64_t number) {
    std::memcpy(object, argument, number);
    return absl::OkStatus();
  };
  return {copy, to, from, bytes};
}

}  // namespace lockstep::worker
