// Committed makes a checkpoint of the files that shards saved, as a chief does.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "ps/shard/calls.h"

namespace lockstep::ps::test {

// `saved`: the answer of each shard that saved this version into CheckpointFolder(root, version).
// Returns that folder.
inline std::string Committed(const std::string& root, int64_t version, const std::string& optimizer,
                             const std::vector<ShardFile>& saved, uint64_t epoch = 0) {
  Manifest manifest;
  manifest.step = version;
  manifest.epoch = epoch;
  manifest.optimizer = optimizer;
  for (const ShardFile& shard : saved) {
    ShardFile file{shard.file, shard.bytes, {}};
    for (const TensorRecord& tensor : shard.tensors) {
      file.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.crc32c});
    }
    manifest.shards.push_back(std::move(file));
  }
  const auto committed = CommitCheckpoint(root, manifest, 0);
  if (!committed.ok()) std::abort();
  return *committed;
}

}  // namespace lockstep::ps::test
