#include "common/config/job_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/config/job_fields.h"
#include "common/config/rule.h"

namespace lockstep {
namespace {

absl::Status CheckPath(absl::string_view field, const std::string& path) {
  if (path.empty()) return Broken(field, "it is missing", "give the path of the file");
  // An escape in a text proto can put a NUL here, and the system would cut the path at it.
  if (path.find('\0') != std::string::npos) {
    return Broken(field, "there is a NUL in the path", "correct the path");
  }
  return absl::OkStatus();
}

absl::Status CheckIdx(const IdxFiles& idx) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPath("data.idx.train_images", idx.train_images()));
  LOCKSTEP_RETURN_IF_ERROR(CheckPath("data.idx.train_labels", idx.train_labels()));
  if (idx.test_images().empty() && idx.test_labels().empty()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(CheckPath("data.idx.test_images", idx.test_images()));
  return CheckPath("data.idx.test_labels", idx.test_labels());
}

absl::Status CheckCsv(const CsvFile& csv) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPath("data.csv.train", csv.train()));
  if (!csv.test().empty()) LOCKSTEP_RETURN_IF_ERROR(CheckPath("data.csv.test", csv.test()));
  const std::string& column = csv.label_column();
  if (column.empty()) {
    return Broken("data.csv.label_column", "it is missing",
                  "name the column in the header, or its number counted from 0");
  }
  const bool number = std::all_of(column.begin(), column.end(), absl::ascii_isdigit);
  if (csv.no_header() && !number) {
    return Broken("data.csv.label_column",
                  absl::StrCat("a file without a header has no column \"", column, "\""),
                  "give the column's number, counted from 0");
  }
  return absl::OkStatus();
}

absl::Status CheckData(const DataDef& data) {
  if (data.has_idx() == data.has_csv()) {
    return Broken(
        "data", absl::StrCat("expected one of idx and csv, got ", data.has_idx() ? "both" : "none"),
        "name the files of one format");
  }
  LOCKSTEP_RETURN_IF_ERROR(data.has_idx() ? CheckIdx(data.idx()) : CheckCsv(data.csv()));
  if (data.no_shuffle() && data.shuffle_buffer() != 0) {
    return Broken("data.shuffle_buffer", "no_shuffle is given too", "keep one of the two");
  }
  return absl::OkStatus();
}

absl::Status CheckBatch(const JobDef& job) {
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
  if (job.max_steps() < 0) return OutOfRange("max_steps", "a positive number", job.max_steps());
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
  const bool has_test_set =
      !job.data().idx().test_images().empty() || !job.data().csv().test().empty();
  if (evaluation.every_steps() > 0 && !has_test_set) {
    return Broken(
        "evaluation.every_steps", "there is no test set to evaluate on",
        job.data().has_idx() ? "give data.idx.test_images and test_labels" : "give data.csv.test");
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

}  // namespace

absl::Status CheckJob(const JobDef& job) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPath("model", job.model()));
  LOCKSTEP_RETURN_IF_ERROR(CheckJobFields(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckData(job.data()));
  LOCKSTEP_RETURN_IF_ERROR(CheckBatch(job));
  if (!job.has_optimizer()) {
    return Broken("optimizer", "it is missing",
                  "write optimizer { sgd {} learning_rate { base: 0.1 } } or another one");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckOptimizer(job.optimizer()));
  LOCKSTEP_RETURN_IF_ERROR(CheckSync(job.sync()));
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
