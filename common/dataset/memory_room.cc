#include "common/dataset/memory_room.h"

#include "absl/strings/str_cat.h"
#include "common/base/memory_room.h"

namespace lockstep {

absl::Status CheckRoomForData(const std::string& file, int64_t bytes) {
  return CheckRoomFor({.error = absl::StrCat(file, ": expected data that fit the memory, got ",
                                             bytes, " bytes to hold"),
                       .bytes = static_cast<uint64_t>(bytes),
                       .remedy = "use a file with fewer examples"});
}

}  // namespace lockstep
