// Which errors of files may pass by themselves.
#include "common/fs/fs_error.h"

#include <catch2/catch.hpp>
#include <cerrno>

namespace lockstep {
namespace {

TEST_CASE("a shortage of descriptors or memory may pass, a missing file does not") {
  for (const int error : {EMFILE, ENFILE, ENOMEM, EIO, ESTALE}) {
    CAPTURE(error);
    CHECK(IsStorageFailure(ReadError("/checkpoints", "open the folder", error)));
  }
  for (const int error : {ENOENT, ENOTDIR, EACCES}) {
    CAPTURE(error);
    CHECK_FALSE(IsStorageFailure(ReadError("/checkpoints", "open the folder", error)));
  }
  CHECK_FALSE(IsStorageFailure(WriteError("/checkpoints", "write", ENOSPC)));
}

}  // namespace
}  // namespace lockstep
