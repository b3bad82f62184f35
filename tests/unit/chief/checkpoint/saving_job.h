// A job that saves: a chief with its claim to the folder, and two shards that write as the ps do.
// Every value of step s is s, so that values of different steps cannot be taken for one another.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chief/checkpoint/checkpointer.h"
#include "chief/loop/event_loop.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/owner.h"
#include "tests/unit/chief/support/scripted_ps.h"

namespace lockstep::chief {

inline constexpr uint32_t kNumShards = 2;
inline constexpr uint64_t kJob = 3;
inline constexpr uint64_t kEpoch = 1;
inline constexpr int64_t kNumElements = 64;

// What the ps of a shard writes for step `version`, and answers.
inline absl::StatusOr<SaveReply> WriteAsShard(const SaveRequest& request, uint32_t shard) {
  const std::string& folder = request.folder();
  Tensor values(DType::kFloat32, Shape({kNumElements}));
  std::ranges::fill(values.as<float>(), static_cast<float>(request.version()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const ShardFile file,
      WriteShard(folder, shard, kNumShards, {{shard == 0 ? "w" : "w/momentum", values.view()}},
                 [&] { return CheckShardWriter(folder, kJob, kEpoch, request.command().term()); }));
  SaveReply reply;
  reply.set_file(file.file);
  reply.set_bytes(file.bytes);
  reply.set_has_non_finite(!file.is_finite);
  for (const TensorRecord& record : file.tensors) {
    SaveReply::TensorRecord* const tensor = reply.add_tensors();
    tensor->set_name(record.name);
    tensor->set_dtype(FLOAT32);
    tensor->add_dims(kNumElements);
    tensor->set_crc32c(record.crc32c);
  }
  return reply;
}

class SavingJob {
 public:
  // A chief of this term. It owns nothing before Take.
  SavingJob(const std::string& root, uint64_t term, int keep_last) : claim_(root) {
    owner_ = {.job = kJob, .epoch = kEpoch, .term = term, .chief = term, .host = "a", .pid = 1};
    options_.command.set_job(kJob);
    options_.command.set_term(term);
    options_.root = root;
    options_.keep_last = keep_last;
    options_.manifest.optimizer = "sgd";
    options_.manifest.epoch = kEpoch;
    options_.claim = &claim_;
    options_.warn = [this](std::string text) { warnings_.push_back(std::move(text)); };
  }

  absl::Status Take() {
    LOCKSTEP_RETURN_IF_ERROR(claim_.Enter(owner_));
    return claim_.Take(owner_);
  }

  absl::StatusOr<std::string> Save(int64_t step) {
    warnings_.clear();
    EventLoop loop;
    Checkpointer checkpointer(options_, {&shards_[0], &shards_[1]}, &loop);
    std::optional<absl::StatusOr<std::string>> result;
    checkpointer.Save(GlobalStep(step), [&](absl::StatusOr<std::string> folder) {
      result = std::move(folder);
      loop.Quit();
    });
    for (uint32_t shard = 0; shard < kNumShards; ++shard) {
      shards_[shard].saves.Answer(WriteAsShard(shards_[shard].saves.front(), shard));
    }
    loop.Run(absl::Hours(1), [] {});
    return *std::move(result);
  }

  // Of the last save.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  FolderOwner owner_;
  CheckpointerOptions options_;
  FolderClaim claim_;
  ScriptedPs shards_[kNumShards];
  std::vector<std::string> warnings_;
};

// The step of a checkpoint of which every value is right. Anything else is an error.
inline absl::StatusOr<int64_t> StepOfSound(const std::string& folder) {
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(folder));
  const int64_t step = reader.manifest().step;
  for (const char* name : {"w", "w/momentum"}) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor values, reader.Read(name));
    for (const float value : values.as<float>()) {
      if (value != static_cast<float>(step)) return absl::InternalError("values of another step");
    }
  }
  return step;
}

// Of the checkpoint that a restore from the root takes.
inline absl::StatusOr<int64_t> NewestSound(const std::string& root,
                                           std::vector<std::string>* warnings = nullptr) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string folder, ResolveCheckpoint(root, warnings));
  return StepOfSound(folder);
}

}  // namespace lockstep::chief
