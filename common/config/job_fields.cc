#include "common/config/job_fields.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/config/job.h"
#include "common/config/rule.h"
#include "common/optimizer/adadelta.h"
#include "common/optimizer/adagrad.h"
#include "common/optimizer/adam.h"
#include "common/optimizer/ftrl.h"
#include "common/optimizer/rmsprop.h"

namespace lockstep {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// What a number may be.
struct Limit {
  enum Kind {
    kAny,
    kCount,         // a whole number from `least` to `most`
    kFinite,        // no NaN, no infinity; so are all below
    kPositive,      // > 0
    kFromZero,      // >= 0
    kUpToZero,      // <= 0
    kFraction,      // >= 0 and < 1
    kBetween0And1,  // > 0 and < 1
    kFrom0To1,      // >= 0 and <= 1
  };
  Kind kind = kAny;
  int64_t least = 0;
  int64_t most = 0;
};

constexpr Limit Count(int64_t least, int64_t most = kMaxCount) {
  return {Limit::kCount, least, most};
}

constexpr double kNoDefault = 0;

// One row per field that has a default or a limit. `path` leads from the job through its blocks.
// The default is of a field that is not set, and of one without presence that is 0.
struct JobField {
  const char* path;
  double fallback;
  Limit limit;
};

const JobField kJobFields[] = {
    {"towers", 1, Count(0, limits::kMaxTowers)},
    {"max_part_bytes", 64 << 20, Count(0, std::numeric_limits<int64_t>::max())},
    {"local.ps", kNoDefault, Count(1, kMaxLocalTasks)},
    {"local.workers", kNoDefault, Count(1, kMaxLocalTasks)},

    {"local_sync.max_per_device_batch_size", kNoDefault, Count(0)},
    {"local_sync.load", kNoDefault, Count(0)},
    {"local_sync.passes", kNoDefault, Count(0)},

    {"strategy.replicated.cross_tower_ops.reduction_to_one_device.reduce_to_device", kNoDefault,
     Count(0)},
    {"strategy.replicated.cross_tower_ops.all_reduce.packing.num_packs", kNoDefault,
     Count(0, 65536)},
    {"strategy.replicated.cross_tower_ops.all_reduce.packing.agg_small_grads_max_bytes", kNoDefault,
     Count(0)},
    {"strategy.replicated.cross_tower_ops.all_reduce.packing.agg_small_grads_max_group", kNoDefault,
     Count(0)},
    {"strategy.replicated.cross_tower_ops.multi_worker_all_reduce.packing.num_packs", kNoDefault,
     Count(0, 65536)},
    {"strategy.replicated.cross_tower_ops.multi_worker_all_reduce.packing.agg_small_grads_max_"
     "bytes",
     kNoDefault, Count(0)},
    {"strategy.replicated.cross_tower_ops.multi_worker_all_reduce.packing.agg_small_grads_max_"
     "group",
     kNoDefault, Count(0)},
    {"strategy.replicated.cross_tower_ops.collective_all_reduce.all_reduce_merge_scope", kNoDefault,
     Count(0)},

    {"data.offset", kNoDefault, {Limit::kFinite}},
    {"data.scale", 1, {Limit::kFinite}},
    {"data.augmentation.shift", kNoDefault, Count(0)},
    {"data.shuffle_buffer", kNoDefault, Count(0)},
    {"data.num_classes", kNoDefault, Count(0)},
    {"data.prefetch", 2, Count(0, limits::kMaxPrefetch)},
    {"data.text.length", kNoDefault, Count(0)},
    {"data.text.held_out", kNoDefault, {Limit::kFraction}},

    {"sync.replicas_to_aggregate", kNoDefault, Count(1, limits::kMaxReplicas)},
    {"sync.init_tokens", kNoDefault, Count(-1)},
    {"sync.min_replicas", kNoDefault, Count(1)},
    {"sync.ps_replicas", kNoDefault, Count(0, 1)},
    {"sync.asynchronous.max_staleness", kNoDefault, Count(0)},
    {"transport.wire_type", FLOAT32, {}},

    {"evaluation.every_steps", kNoDefault, Count(0)},
    {"evaluation.batch", 256, Count(0)},
    {"checkpoint.every_steps", kNoDefault, Count(0)},
    {"checkpoint.keep_last", 3, Count(0)},

    // TensorFlow's defaults.
    {"optimizer.momentum.momentum", kNoDefault, {Limit::kFraction}},
    {"optimizer.adam.beta1", AdamOptions().beta1, {Limit::kFraction}},
    {"optimizer.adam.beta2", AdamOptions().beta2, {Limit::kFraction}},
    {"optimizer.adam.epsilon", AdamOptions().epsilon, {Limit::kPositive}},
    {"optimizer.adam.weight_decay", kNoDefault, {Limit::kFromZero}},
    {"optimizer.adagrad.initial_accumulator_value",
     AdagradOptions().initial_accumulator_value,
     {Limit::kPositive}},
    {"optimizer.adadelta.rho", AdadeltaOptions().rho, {Limit::kFraction}},
    {"optimizer.adadelta.epsilon", AdadeltaOptions().epsilon, {Limit::kPositive}},
    {"optimizer.rmsprop.decay", RmsPropOptions().decay, {Limit::kFraction}},
    {"optimizer.rmsprop.momentum", kNoDefault, {Limit::kFraction}},
    {"optimizer.rmsprop.epsilon", RmsPropOptions().epsilon, {Limit::kPositive}},
    {"optimizer.ftrl.learning_rate_power", FtrlOptions().learning_rate_power, {Limit::kUpToZero}},
    {"optimizer.ftrl.initial_accumulator_value",
     FtrlOptions().initial_accumulator_value,
     {Limit::kFromZero}},
    {"optimizer.ftrl.l1_regularization_strength", kNoDefault, {Limit::kFromZero}},
    {"optimizer.ftrl.l2_regularization_strength", kNoDefault, {Limit::kFromZero}},
    {"optimizer.ftrl.l2_shrinkage_regularization_strength", kNoDefault, {Limit::kFromZero}},
    {"optimizer.ftrl.beta", kNoDefault, {Limit::kFromZero}},
    {"optimizer.clipping.value", kNoDefault, {Limit::kPositive}},
    {"optimizer.clipping.norm", kNoDefault, {Limit::kPositive}},
    {"optimizer.clipping.global_norm", kNoDefault, {Limit::kPositive}},
    {"optimizer.variable_averages.decay", kNoDefault, {Limit::kBetween0And1}},
    {"optimizer.learning_rate.exponential.decay_rate", kNoDefault, {Limit::kPositive}},
    {"optimizer.learning_rate.exponential.decay_steps", kNoDefault, Count(1)},
    {"optimizer.learning_rate.natural_exp.decay_rate", kNoDefault, {Limit::kPositive}},
    {"optimizer.learning_rate.natural_exp.decay_steps", kNoDefault, Count(1)},
    {"optimizer.learning_rate.inverse_time.decay_rate", kNoDefault, {Limit::kPositive}},
    {"optimizer.learning_rate.inverse_time.decay_steps", kNoDefault, Count(1)},
    {"optimizer.learning_rate.polynomial.decay_steps", kNoDefault, Count(1)},
    {"optimizer.learning_rate.polynomial.end_learning_rate", 0.0001, {Limit::kFromZero}},
    {"optimizer.learning_rate.polynomial.power", 1, {Limit::kPositive}},
    {"optimizer.learning_rate.cosine.alpha", kNoDefault, {Limit::kFrom0To1}},
    {"optimizer.learning_rate.cosine.decay_steps", kNoDefault, Count(1)},
    {"optimizer.learning_rate.piecewise.values", kNoDefault, {Limit::kPositive}},
    {"optimizer.learning_rate.warm_up.start", kNoDefault, {Limit::kFromZero}},
    {"optimizer.learning_rate.warm_up.steps", kNoDefault, Count(1)},
};

absl::Status CheckNumber(absl::string_view field, const Limit& limit, double value) {
  const auto check = [&](bool holds, absl::string_view expected) {
    return holds && std::isfinite(value) ? absl::OkStatus()
                                         : OutOfRange(field, expected, static_cast<float>(value));
  };
  switch (limit.kind) {
    case Limit::kFinite:
      return check(true, "a finite number");
    case Limit::kPositive:
      return check(value > 0, "a positive number");
    case Limit::kFromZero:
      return check(value >= 0, "a number from 0 on");
    case Limit::kUpToZero:
      return check(value <= 0, "a number up to 0");
    case Limit::kFraction:
      return check(value >= 0 && value < 1, "a number from 0 to below 1");
    case Limit::kBetween0And1:
      return check(value > 0 && value < 1, "a number between 0 and 1");
    case Limit::kFrom0To1:
      return check(value >= 0 && value <= 1, "a number from 0 to 1");
    case Limit::kAny:
    case Limit::kCount:
      break;
  }
  return absl::OkStatus();
}

// Of a float field, or of each value of a repeated one.
absl::Status CheckFloats(const JobField& row, const Message& block, const FieldDescriptor& field) {
  const Reflection& reflection = *block.GetReflection();
  if (!field.is_repeated()) {
    return CheckNumber(row.path, row.limit, reflection.GetFloat(block, &field));
  }
  for (int i = 0; i < reflection.FieldSize(block, &field); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckNumber(row.path, row.limit, reflection.GetRepeatedFloat(block, &field, i)));
  }
  return absl::OkStatus();
}

absl::Status CheckField(const JobField& row, const Message& block, const FieldDescriptor& field) {
  const Reflection& reflection = *block.GetReflection();
  if (field.has_presence() && !reflection.HasField(block, &field)) return absl::OkStatus();
  if (row.limit.kind == Limit::kAny) return absl::OkStatus();
  if (row.limit.kind != Limit::kCount) return CheckFloats(row, block, field);
  return CheckCount(row.path, reflection.GetInt64(block, &field), row.limit.least, row.limit.most);
}

void FillField(const JobField& row, Message* block, const FieldDescriptor& field) {
  const Reflection& reflection = *block->GetReflection();
  // Without presence "set" means "not 0".
  if (row.fallback == kNoDefault || reflection.HasField(*block, &field)) return;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(block, &field, static_cast<int64_t>(row.fallback));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.SetFloat(block, &field, static_cast<float>(row.fallback));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnumValue(block, &field, static_cast<int>(row.fallback));
    default:
      LOCKSTEP_CHECK(!"a type that defaults have");
  }
}

struct FieldPath {
  std::vector<const FieldDescriptor*> blocks;  // outermost first
  const FieldDescriptor* field;
};

FieldPath Resolve(const JobField& row) {
  FieldPath path;
  const std::vector<std::string> names = absl::StrSplit(row.path, '.');
  const google::protobuf::Descriptor* type = JobDef::descriptor();
  for (const std::string& name : names) {
    LOCKSTEP_CHECK(type != nullptr);
    path.field = type->FindFieldByName(name);
    LOCKSTEP_CHECK(path.field != nullptr);
    type = path.field->message_type();
    if (type != nullptr) path.blocks.push_back(path.field);
  }
  return path;
}

// "A, B or C".
std::string NamesOf(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  if (names.size() == 1) return names.front();
  const std::string last = names.back();
  names.pop_back();
  return absl::StrCat(absl::StrJoin(names, ", "), " or ", last);
}

// In `block` and all that it holds. `where` is the path of the block, with a dot.
absl::Status CheckEnums(const Message& block, const std::string& where) {
  const Reflection& reflection = *block.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(block, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = absl::StrCat(where, field->name());
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      const int value = reflection.GetEnumValue(block, field);
      const EnumDescriptor& type = *field->enum_type();
      // A field takes some of the element types, not all: job_rules.cc.
      if (&type == DataType_descriptor() || type.FindValueByNumber(value) != nullptr) continue;
      return OutOfRange(path, NamesOf(type), value);
    }
    if (field->message_type() == nullptr || field->is_repeated()) continue;
    LOCKSTEP_RETURN_IF_ERROR(
        CheckEnums(reflection.GetMessage(block, field), absl::StrCat(path, ".")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckJobFields(const JobDef& job) {
  LOCKSTEP_RETURN_IF_ERROR(CheckEnums(job, ""));
  for (const JobField& row : kJobFields) {
    const FieldPath path = Resolve(row);
    const Message* block = &job;
    for (const FieldDescriptor* inner : path.blocks) {
      const Reflection& reflection = *block->GetReflection();
      block = reflection.HasField(*block, inner) ? &reflection.GetMessage(*block, inner) : nullptr;
      if (block == nullptr) break;
    }
    if (block != nullptr) LOCKSTEP_RETURN_IF_ERROR(CheckField(row, *block, *path.field));
  }
  return absl::OkStatus();
}

void FillJobFields(JobDef* job) {
  for (const JobField& row : kJobFields) {
    const FieldPath path = Resolve(row);
    Message* block = job;
    for (const FieldDescriptor* inner : path.blocks) {
      const Reflection& reflection = *block->GetReflection();
      const bool is_absent = !reflection.HasField(*block, inner);
      // A default makes no block that is one of several kinds.
      if (is_absent && (row.fallback == kNoDefault || inner->containing_oneof() != nullptr)) {
        block = nullptr;
        break;
      }
      block = reflection.MutableMessage(block, inner);
    }
    if (block != nullptr) FillField(row, block, *path.field);
  }
}

}  // namespace lockstep
