// SavedTensors lists the tensors that a shard saves, to compare two shards.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "common/checkpoint/checkpoint.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps::test {

// Returns the checksums of the variables and slots of a version, by name.
inline std::map<std::string, uint32_t> SavedTensors(Shard* of, int64_t version) {
  const lockstep::test::TemporaryFolder folder(lockstep::test::TemporaryFolder::kInMemory);
  const absl::StatusOr<ShardFile> file = of->Save(kCommand, GlobalStep(version), folder.path());
  REQUIRE(file.ok());
  std::map<std::string, uint32_t> tensors;
  for (const TensorRecord& tensor : file->tensors) tensors[tensor.name] = tensor.crc32c;
  return tensors;
}

}  // namespace lockstep::ps::test
