#include "common/config/job_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/config/job_defaults.h"
#include "common/config/job_fields.h"
#include "common/config/rule.h"

namespace lockstep {
namespace {

absl::Status CheckLocalSync(const JobDef& job) {
  const char* const batch = job.global_batch() != 0      ? "global_batch"
                            : job.batch_per_tower() != 0 ? "batch_per_tower"
                                                         : nullptr;
  if (batch != nullptr) {
    return Broken("local_sync", absl::StrCat("it replaces the batch, but ", batch, " is given too"),
                  absl::StrCat("remove ", batch, ", or local_sync"));
  }
  if (job.sync().has_asynchronous()) {
    return Broken(
        "local_sync",
        "all towers of a worker take a batch of its load together, and in an asynchronous "
        "job each tower trains by itself",
        "remove local_sync, or sync.asynchronous");
  }
  if (!job.data().transform().empty() || job.data().auto_shard() != DataDef::RECORD) {
    return Broken(job.data().transform().empty() ? "data.auto_shard" : "data.transform",
                  "local_sync divides the stream of all examples over the workers by itself",
                  "remove it, or local_sync");
  }
  if (job.data().prefetch() == 0) return absl::OkStatus();
  return Broken("data.prefetch", "it counts batches, and local_sync prepares one load ahead",
                "remove it, or local_sync");
}

absl::Status CheckBatch(const JobDef& job) {
  if (job.has_local_sync()) return CheckLocalSync(job);
  if ((job.global_batch() != 0) == (job.batch_per_tower() != 0)) {
    return Broken("global_batch",
                  absl::StrCat("expected one of global_batch and batch_per_tower, got ",
                               job.global_batch() != 0 ? "both" : "none"),
                  "keep global_batch: examples per step, or batch_per_tower: examples per step and "
                  "tower");
  }
  if (job.global_batch() != 0) return CheckCount("global_batch", job.global_batch(), 1);
  return CheckCount("batch_per_tower", job.batch_per_tower(), 1);
}

absl::Status CheckStop(const JobDef& job) {
  if ((job.max_steps() != 0) == (job.data_epochs() != 0)) {
    return Broken("max_steps",
                  absl::StrCat("expected one of max_steps and data_epochs, got ",
                               job.max_steps() != 0 ? "both" : "none"),
                  "keep max_steps: steps, or data_epochs: passes over the training data");
  }
  if (job.max_steps() < 0 || job.max_steps() > limits::kMaxStep) {
    return OutOfRange("max_steps", absl::StrCat("1 to ", limits::kMaxStep), job.max_steps());
  }
  // A NaN differs from 0, and is caught here.
  if (job.max_steps() == 0 && !(job.data_epochs() > 0 && std::isfinite(job.data_epochs()))) {
    return OutOfRange("data_epochs", "a positive number", job.data_epochs());
  }
  return absl::OkStatus();
}

absl::Status CheckEvaluation(const JobDef& job) {
  const EvaluationDef& evaluation = job.evaluation();
  if (evaluation.use_averages() && !job.optimizer().has_variable_averages()) {
    return Broken("evaluation.use_averages", "there are no averages to evaluate",
                  "give optimizer.variable_averages, or remove it");
  }
  if (evaluation.every_steps() > 0 && !HasTestSet(job.data())) {
    return Broken("evaluation.every_steps", "there is no test set to evaluate on",
                  job.data().has_idx()   ? "give data.idx.test_images and test_labels"
                  : job.data().has_csv() ? "give data.csv.test"
                                         : "give data.text.held_out");
  }
  return absl::OkStatus();
}

absl::Status CheckCheckpoint(const CheckpointDef& checkpoint) {
  if (checkpoint.every_steps() > 0 && checkpoint.folder().empty()) {
    return Broken("checkpoint.folder", "it is missing but every_steps is given",
                  "name the folder for checkpoints");
  }
  if (!checkpoint.folder().empty()) return CheckPath("checkpoint.folder", checkpoint.folder());
  return absl::OkStatus();
}

absl::Status CheckTransport(const TransportDef& transport) {
  const DataType type = transport.wire_type();
  if (type == DATA_TYPE_UNSPECIFIED || absl::c_linear_search(kWireTypes, type)) {
    return absl::OkStatus();
  }
  return Broken("transport.wire_type",
                absl::StrCat("expected FLOAT32, BFLOAT16 or FLOAT16, got ",
                             DataType_IsValid(type) ? DataType_Name(type) : absl::StrCat(type)),
                "name one of them, or leave it out for FLOAT32");
}

absl::Status CheckTrained(const JobDef& job) {
  if (!job.losses().empty()) return CheckLosses(job);
  if (job.has_optimizer()) return CheckOptimizer(job.optimizer());
  return Broken("optimizer", "it is missing",
                "write optimizer { sgd {} learning_rate { base: 0.1 } } or another one");
}

}  // namespace

absl::Status CheckPath(absl::string_view field, const std::string& path) {
  if (path.empty()) return Broken(field, "it is missing", "give the path of the file");
  // An escape in a text proto can put a NUL here, and the system would cut the path at it.
  if (path.find('\0') != std::string::npos) {
    return Broken(field, "there is a NUL in the path", "correct the path");
  }
  return absl::OkStatus();
}

absl::Status CheckJob(const JobDef& job) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPath("model", job.model()));
  LOCKSTEP_RETURN_IF_ERROR(CheckJobFields(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckData(job.data()));
  LOCKSTEP_RETURN_IF_ERROR(CheckBatch(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckTrained(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckSync(job.sync()));
  LOCKSTEP_RETURN_IF_ERROR(CheckStrategy(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckMinReplicas(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckPsReplicas(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckStop(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckEvaluation(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckCheckpoint(job.checkpoint()));
  return CheckTransport(job.transport());
}

absl::Status CheckJobAgainstModel(const JobDef& job, const ModelDef& model) {
  const int64_t shift = job.data().augmentation().shift();
  if (shift == 0) return absl::OkStatus();
  const auto& dims = model.input_shape();
  const std::string shape = absl::StrCat("[", absl::StrJoin(dims, ","), "]");
  if (dims.size() != 3) {
    return Broken("data.augmentation.shift",
                  absl::StrCat("examples of shape ", shape, " are no images"),
                  "remove it, or let the model take [height,width,channels]");
  }
  if (shift >= std::min(dims[0], dims[1])) {
    return Broken("data.augmentation.shift",
                  absl::StrCat("expected less than the image ", shape, " is wide, got ", shift),
                  "use a few pixels");
  }
  return absl::OkStatus();
}

}  // namespace lockstep
