#include <algorithm>
#include <array>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/config/job_rules.h"
#include "common/config/rule.h"

namespace lockstep {
namespace {

constexpr char kField[] = "data.transform";
constexpr char kScale[] = "scale";
constexpr char kShift[] = "shift";

bool IsMap(const DataTransform& transform, absl::string_view function) {
  return transform.has_map() && transform.map().function() == function;
}

absl::Status CheckTransform(const std::string& field, const DataTransform& transform) {
  switch (transform.kind_case()) {
    case DataTransform::kRepeat:
      return CheckCount(field + ".repeat.count", transform.repeat().count(), 0);
    case DataTransform::kShuffle:
      return CheckCount(field + ".shuffle.buffer", transform.shuffle().buffer(), 1);
    case DataTransform::kMap:
      if (IsMap(transform, kScale) || IsMap(transform, kShift)) return absl::OkStatus();
      return Broken(field + ".map.function",
                    absl::StrCat("expected \"scale\" or \"shift\", got \"",
                                 absl::CHexEscape(transform.map().function()), "\""),
                    "name one of them");
    case DataTransform::kPrefetch:
      return CheckCount(field + ".prefetch.batches", transform.prefetch().batches(), 1,
                        limits::kMaxPrefetch);
    case DataTransform::KIND_NOT_SET:
      return Broken(field, "it has no kind",
                    "write shard {}, repeat {}, shuffle {...}, map {...}, batch {} or prefetch "
                    "{...}");
    case DataTransform::kShard:
    case DataTransform::kBatch:
      break;
  }
  return absl::OkStatus();
}

// What else of `data` says the same as a step.
absl::Status CheckReplaced(const DataDef& data) {
  const auto replaced = [](absl::string_view field, absl::string_view remedy) {
    return Broken(absl::StrCat("data.", field), "transform is given too", remedy);
  };
  if (data.shuffle_buffer() != 0) {
    return replaced("shuffle_buffer", "remove it, and write transform { shuffle {...} }");
  }
  if (data.no_shuffle()) return replaced("no_shuffle", "remove it, and every shuffle");
  if (data.prefetch() != 0) {
    return replaced("prefetch", "remove it, and write transform { prefetch {...} } at the end");
  }
  return absl::OkStatus();
}

absl::Status CheckOnce(const DataDef& data) {
  const auto count = [&](auto is_kind) { return absl::c_count_if(data.transform(), is_kind); };
  const auto batches = count([](const DataTransform& t) { return t.has_batch(); });
  if (batches != 1) {
    return Broken(kField, absl::StrCat("expected batch once, got it ", batches, " times"),
                  "write transform { batch {} } where the towers' batches are to be made");
  }
  if (count([](const DataTransform& t) { return t.has_shard(); }) > 1) {
    return Broken(kField, "shard comes twice", "keep one: two leave examples that nobody reads");
  }
  for (const char* function : {kScale, kShift}) {
    if (count([&](const DataTransform& t) { return IsMap(t, function); }) <= 1) continue;
    return Broken(kField, absl::StrCat("map \"", function, "\" comes twice"), "keep one");
  }
  return absl::OkStatus();
}

// The functions of map are those that the other fields of `data` describe.
absl::Status CheckMaps(const DataDef& data) {
  const auto find = [&](absl::string_view function) {
    return absl::c_find_if(data.transform(),
                           [&](const DataTransform& t) { return IsMap(t, function); });
  };
  const auto scale = find(kScale);
  const auto shift = find(kShift);
  const auto none = data.transform().end();
  const bool is_scaled = data.offset() != 0 || (data.scale() != 0 && data.scale() != 1);
  if (is_scaled && scale == none) {
    return Broken(kField, "offset or scale is given, and no map \"scale\"",
                  "write transform { map { function: \"scale\" } }: test examples are scaled too");
  }
  if ((data.augmentation().shift() != 0) != (shift != none)) {
    return Broken(kField,
                  shift == none ? "augmentation.shift is given, and no map \"shift\""
                                : "map \"shift\" is given, and no augmentation.shift",
                  "give both or none");
  }
  if (scale != none && shift != none && shift < scale) {
    return Broken(kField, "map \"shift\" comes before map \"scale\"",
                  "swap them: the zeros that are shifted in are not scaled");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTransform(const DataDef& data) {
  LOCKSTEP_RETURN_IF_ERROR(CheckReplaced(data));
  for (int i = 0; i < data.transform_size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(CheckTransform(absl::StrCat(kField, "[", i, "]"), data.transform(i)));
    if (data.transform(i).has_prefetch() && i + 1 != data.transform_size()) {
      return Broken(absl::StrCat(kField, "[", i, "].prefetch"), "it is not the last step",
                    "move it to the end");
    }
    if (data.transform(i).has_shard() && data.auto_shard() == DataDef::FILE) {
      return Broken(absl::StrCat(kField, "[", i, "].shard"),
                    "auto_shard: FILE has given each worker its files",
                    "remove one of the two, or nobody reads most of the examples");
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckOnce(data));
  return CheckMaps(data);
}

}  // namespace lockstep
