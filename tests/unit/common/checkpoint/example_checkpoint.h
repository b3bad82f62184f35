// A small checkpoint of two shards.
#pragma once

#include <string>

#include "common/checkpoint/checkpoint.h"

namespace lockstep::test {

// Shard 0 holds w: float32 [2, 3] = base, base + 1, ...; shard 1 holds w/momentum (the same,
// negative) and the int64 scalar n = step. Commits with `keep_last` and returns the folder.
// `lineage` is a manifest's epoch and origin.
inline absl::StatusOr<std::string> WriteExample(const std::string& root, int64_t step,
                                                int keep_last = 0, float base = 1,
                                                const Manifest& lineage = {},
                                                const PublishCheck& check = nullptr) {
  Tensor w(DType::kFloat32, {2, 3}), momentum(DType::kFloat32, {2, 3}), n(DType::kInt64, {});
  for (size_t i = 0; i < 6; ++i) {
    w.as<float>()[i] = base + i;
    momentum.as<float>()[i] = -w.as<float>()[i];
  }
  n.as<int64_t>()[0] = step;
  Manifest manifest = lineage;
  manifest.step = step;
  const std::string folder = CheckpointFolder(root, step);
  auto first = WriteShard(folder, 0, 2, {{"w", w.view()}});
  if (!first.ok()) return first.status();
  auto second = WriteShard(folder, 1, 2, {{"w/momentum", momentum.view()}, {"n", n.view()}});
  if (!second.ok()) return second.status();
  manifest.shards = {*std::move(first), *std::move(second)};
  return CommitCheckpoint(root, manifest, keep_last, nullptr, check);
}

}  // namespace lockstep::test
