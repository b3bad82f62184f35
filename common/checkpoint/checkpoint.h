// A checkpoint on disk:
//   <root>/ckpt-<step>/shard-<k>-of-<n>.safetensors   written by each ps
//   <root>/ckpt-<step>/manifest.json                  written last, by the chief: the checkpoint
//   exists with it <root>/LATEST                                     name of the newest complete
//   checkpoint
// Every file appears by temp + fsync + rename + fsync of the folder. Tensor names: "<variable>",
// "<variable>/<slot>", "optimizer/<scalar>".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"

namespace lockstep {

struct TensorRecord {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  uint32_t crc32c = 0;
};

struct ShardFile {
  std::string file;  // name inside the checkpoint folder
  uint64_t bytes = 0;
  std::vector<TensorRecord> tensors;
};

struct Manifest {
  int64_t step = 0;
  uint64_t epoch = 0;
  uint64_t seed = 0;
  std::string lockstep_version;
  std::string optimizer;  // kind, so that a restore with another one is refused
  std::string model;      // the model file as text proto: a checkpoint predicts by itself
  std::string job;        // the job file as text proto, paths absolute
  std::string cluster;    // canonical cluster spec it was written by
  std::vector<ShardFile> shards;
};

struct NamedTensor {
  std::string name;
  TensorView value;
};

// Writes one shard file (makes the folder if missing) and returns its record.
absl::StatusOr<ShardFile> WriteShard(const std::string& folder, uint32_t shard, uint32_t num_shards,
                                     const std::vector<NamedTensor>& tensors);

// Writes manifest.json into <root>/ckpt-<step>, then LATEST, then deletes all but the newest
// `keep_last` complete checkpoints (0: keeps all) and incomplete ones older than this one. Returns
// the checkpoint's folder.
absl::StatusOr<std::string> CommitCheckpoint(const std::string& root, const Manifest& manifest,
                                             int keep_last);

// The folder that shards of this step write into: <root>/ckpt-<step>.
std::string CheckpointFolder(const std::string& root, int64_t step);

// `path` is a checkpoint folder, or a root whose newest complete checkpoint is meant. NOT_FOUND
// names what was looked for; DATA_LOSS what is wrong with a manifest.
absl::StatusOr<std::string> ResolveCheckpoint(const std::string& path);
absl::StatusOr<Manifest> ReadManifest(const std::string& folder);

// Reads tensors by name into memory of the caller's: dtype and shape must match the record
// (INVALID_ARGUMENT naming the tensor), the CRC must be right (DATA_LOSS naming file and tensor).
// NOT_FOUND: a name that is not there.
class CheckpointReader {
 public:
  static absl::StatusOr<CheckpointReader> Open(const std::string& folder);
  const Manifest& manifest() const { return manifest_; }
  bool Has(const std::string& name) const { return index_.contains(name); }
  absl::StatusOr<Tensor> Read(const std::string& name) const;
  absl::Status ReadInto(const std::string& name, MutableTensorView value) const;

 private:
  struct Place {
    size_t shard;
    size_t tensor;
  };
  std::string folder_;
  Manifest manifest_;
  std::map<std::string, Place> index_;
};

}  // namespace lockstep
