// A checkpoint on disk:
//   <root>/ckpt-<step>/shard-<k>-of-<n>.safetensors   written by each ps
//   <root>/ckpt-<step>/manifest.json                  written last, by the chief: the checkpoint
//                                                     exists with it
//   <root>/LATEST                                     name of the newest complete checkpoint
//   <root>/OWNER.json, <root>/LOCK                    whose folder it is (owner.h)
// Every file appears by temp + fsync + rename + fsync of the folder. Tensor names: "<variable>",
// "<variable>/<slot>", "optimizer/<scalar>". docs/checkpoint.md describes the files for users.
//
// Writers: each ps its own shard file, one chief the rest. Functions are thread-safe for different
// folders.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/origin.h"
#include "common/checkpoint/safetensors_file.h"
#include "common/checkpoint/whole_tensors.h"
#include "common/fs/atomic_file.h"
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
  bool is_finite = true;  // no value in it is infinite or NaN
};

struct Manifest {
  int64_t step = 0;
  uint64_t epoch = 0;  // the history that it belongs to
  CheckpointOrigin origin;
  uint64_t seed = 0;
  std::string lockstep_version;
  std::string optimizer;  // kind, so that a restore with another one is refused
  std::string model;      // the model file as text proto: a checkpoint predicts by itself
  std::string job;        // the job file as text proto, paths absolute
  std::string cluster;    // canonical cluster spec it was written by
  std::vector<ShardFile> shards;

  // No value of the checkpoint is infinite or NaN.
  bool IsFinite() const { return std::ranges::all_of(shards, &ShardFile::is_finite); }
};

struct NamedTensor {
  std::string name;
  TensorView value;  // without memory where there is `read`
  // Copies bytes of the value from `offset` on, of one that other threads may change meanwhile:
  // those that it had at one moment. Null: the value's memory has them.
  std::function<void(uint64_t offset, std::span<std::byte> to)> read = nullptr;
};

// Writes one shard file (makes the folder if missing) and returns its record. `check`: AtomicFile.
absl::StatusOr<ShardFile> WriteShard(const std::string& folder, uint32_t shard, uint32_t num_shards,
                                     const std::vector<NamedTensor>& tensors,
                                     const PublishCheck& check = nullptr);

// Writes manifest.json into <root>/ckpt-<step>, then LATEST, then deletes what is no longer needed:
// of the history that leads to this step all but the newest `keep_last` checkpoints (0: keeps all)
// and what is older than those, the incomplete ones before this step, and files in its folder that
// the manifest does not name. Checkpoints that an abandoned history has left between those kept,
// and beyond this step, stay. So does the newest one that is finite (FindFinite). Returns the
// checkpoint's folder. What could not be deleted is no error: it stays, and `warnings` gets a line.
//
// `check` is asked before each file appears and each deletion: its error ends it. ALREADY_EXISTS
// where LATEST names a later step of this epoch, ABORTED where it names a later epoch: nothing is
// written. FAILED_PRECONDITION when a shard file is not there with its size. Where LATEST cannot be
// written, a manifest that this call has made goes again if it can; the error says so if it stays.
absl::StatusOr<std::string> CommitCheckpoint(const std::string& root, const Manifest& manifest,
                                             int keep_last,
                                             std::vector<std::string>* warnings = nullptr,
                                             const PublishCheck& check = nullptr);

// Whether LATEST, in the root that `checkpoint` is in, names a checkpoint of this epoch and of this
// step or a later one, or a checkpoint of a later epoch, in which the job goes on elsewhere. False
// also where LATEST or the manifest cannot be read.
bool HasCheckpointSince(const std::string& checkpoint, uint64_t epoch, int64_t step);

// Deletes what a save of this step that failed has left, so that it takes no room: its shards and
// its folder, unless other files are in it; where it has a checkpoint, the shard files there that
// the manifest does not name. `check` as above.
absl::Status RemoveUnfinishedSave(const std::string& root, int64_t step, const PublishCheck& check);

// The step of the newest checkpoint up to `newest` whose values are all finite; of its history, or
// where that has none any more, of the whole root. nullopt: there is none.
absl::StatusOr<std::optional<int64_t>> FindFinite(const std::string& root, const Manifest& newest);

// The folder that shards of this step write into: <root>/ckpt-<step>.
std::string CheckpointFolder(const std::string& root, int64_t step);

// `path` is a checkpoint folder, or a root whose newest complete checkpoint is meant: of the
// history that goes on (history.h), which the owner of the root may have begun. Where that is
// broken, the one before it in that history; `warnings` gets a line for each that was skipped. What
// is returned was read whole and its checksums are right. A root that a save changes meanwhile is
// looked at again. NOT_FOUND names what was looked for; DATA_LOSS what is wrong where all that may
// be taken is broken; INTERNAL where the storage of the newest, or of OWNER.json, has failed
// (IsStorageFailure), or CheckpointGoneError. RESOURCE_EXHAUSTED, with nothing skipped for it: this
// process is short of descriptors or memory.
absl::StatusOr<std::string> ResolveCheckpoint(const std::string& path,
                                              std::vector<std::string>* warnings = nullptr);
// INTERNAL, as of a storage failure that may pass (IsStorageFailure): this checkpoint was there
// before, and is gone now that it is read, so that others may be there.
absl::Status CheckpointGoneError(const std::string& folder);
// NOT_FOUND where there is none; DATA_LOSS naming the file and what is wrong with it.
absl::StatusOr<Manifest> ReadManifest(const std::string& folder);

// Reads tensors by name into memory of the caller's: dtype and shape must match the record
// (INVALID_ARGUMENT naming the tensor), the CRC must be right (DATA_LOSS naming file and tensor).
// The name of a variable that is split by rows (whole_tensors.h) reads its parts, one after the
// other. NOT_FOUND: a name that is not there. Movable; const calls are thread-safe.
class CheckpointReader {
 public:
  // DATA_LOSS naming the file for a shard that is missing or does not fit the manifest.
  static absl::StatusOr<CheckpointReader> Open(const std::string& folder);
  const Manifest& manifest() const { return manifest_; }
  bool Has(const std::string& name) const { return wholes_.Has(name); }
  absl::StatusOr<Tensor> Read(const std::string& name) const;
  absl::Status ReadInto(const std::string& name, MutableTensorView value) const;
  // Rows [first_row, first_row + value's rows) of a tensor of `whole_shape`, which has them
  // (CHECK), however it is split in the checkpoint. A part of which only some rows are wanted is
  // read whole, for its checksum.
  absl::Status ReadRows(const std::string& name, const Shape& whole_shape, int64_t first_row,
                        MutableTensorView value) const;

  // Reads everything and compares the checksums.
  absl::Status Verify() const;

 private:
  struct Place {
    size_t file;   // index into files_
    size_t entry;  // index into its entries
    uint32_t crc32c;
  };
  absl::StatusOr<const WholeTensor*> Find(const std::string& name) const;
  absl::Status CheckType(const std::string& name, const WholeTensor& whole, DType dtype,
                         const Shape& shape) const;
  // `value` is rows [first_row, ...) of the whole; a scalar counts as a row.
  absl::Status ReadParts(const WholeTensor& whole, int64_t first_row,
                         MutableTensorView value) const;
  absl::Status CheckCrc(const Place& place, uint32_t got) const;
  absl::Status AddShard(const ShardFile& shard);

  std::string folder_;
  Manifest manifest_;
  WholeTensors wholes_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Place> index_;
};

}  // namespace lockstep
