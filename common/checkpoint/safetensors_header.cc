#include "common/checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/checked.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/strict_json.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr size_t kAlignment = 8;
constexpr int kHeaderDepth = 3;  // header, tensor, shape

struct NamedDType {
  absl::string_view name;
  DType dtype;
};
constexpr std::array<NamedDType, 7> kDTypes = {{{"U8", DType::kUInt8},
                                                {"F16", DType::kFloat16},
                                                {"BF16", DType::kBFloat16},
                                                {"I32", DType::kInt32},
                                                {"F32", DType::kFloat32},
                                                {"F64", DType::kFloat64},
                                                {"I64", DType::kInt64}}};

std::string Shown(absl::string_view name) {
  return absl::StrCat("tensor '", absl::CEscape(name.substr(0, 80)), "'");
}

absl::Status Wrong(absl::string_view name, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(Shown(name), ": ", what));
}

absl::Status CheckSafetensorsMetadata(const Json& metadata) {
  if (!metadata.is_object()) return absl::DataLossError("__metadata__ is not an object");
  for (const auto& item : metadata.items()) {
    if (!item.value().is_string()) {
      return absl::DataLossError(
          absl::StrCat("__metadata__ '", absl::CEscape(item.key()), "' is not a string"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SafetensorsEntry> DecodeEntry(const std::string& name, const Json& json) {
  if (name.empty() || name.size() > kLongestTensorName)
    return Wrong(name, absl::StrCat("a name of ", name.size(), " bytes, expected 1 to ",
                                    kLongestTensorName));
  if (!json.is_object()) return Wrong(name, "not an object");
  const auto dtype = json.find("dtype");
  const auto shape = json.find("shape");
  const auto offsets = json.find("data_offsets");
  if (json.size() != 3 || dtype == json.end() || shape == json.end() || offsets == json.end())
    return Wrong(name, "expected the fields dtype, shape and data_offsets and no others");

  SafetensorsEntry entry;
  entry.name = name;
  if (!dtype->is_string()) return Wrong(name, "dtype is not a string");
  const auto parsed_dtype = ParseSafetensorsName(dtype->get_ref<const std::string&>());
  if (!parsed_dtype.has_value()) {
    return Wrong(name, absl::StrCat("unknown dtype '",
                                    absl::CEscape(dtype->get_ref<const std::string&>()), "'"));
  }
  entry.dtype = *parsed_dtype;
  auto parsed_shape = ShapeFromJson(*shape);
  if (!parsed_shape.ok()) return Wrong(name, parsed_shape.status().message());
  entry.shape = *std::move(parsed_shape);

  if (!offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
      !(*offsets)[1].is_number_unsigned())
    return Wrong(name, "data_offsets is not a pair of whole numbers");
  entry.begin = (*offsets)[0].get<uint64_t>();
  entry.end = (*offsets)[1].get<uint64_t>();
  if (entry.begin > entry.end) return Wrong(name, "data_offsets end before they begin");
  const auto bytes =
      CheckedMultiply(entry.shape.num_elements(), static_cast<int64_t>(SizeOf(entry.dtype)));
  if (!bytes.has_value() || static_cast<uint64_t>(*bytes) != entry.end - entry.begin) {
    return Wrong(name, absl::StrCat("shape ", entry.shape.ToString(), " of ", Name(entry.dtype),
                                    " does not fit the ", entry.end - entry.begin,
                                    " bytes of its data_offsets"));
  }
  return entry;
}

}  // namespace

absl::string_view SafetensorsName(DType dtype) {
  for (const NamedDType& known : kDTypes)
    if (known.dtype == dtype) return known.name;
  return "";
}

std::optional<DType> ParseSafetensorsName(absl::string_view name) {
  for (const NamedDType& known : kDTypes)
    if (known.name == name) return known.dtype;
  return std::nullopt;
}

std::string EncodeSafetensorsHeader(const std::vector<SafetensorsEntry>& entries) {
  std::string json = "{";
  for (const SafetensorsEntry& entry : entries) {
    absl::StrAppend(&json, json.size() > 1 ? "," : "", Json(entry.name).dump(), ":{\"dtype\":\"",
                    SafetensorsName(entry.dtype), "\",\"shape\":[",
                    absl::StrJoin(entry.shape.dims(), ","), "],\"data_offsets\":[", entry.begin,
                    ",", entry.end, "]}");
  }
  json += "}";
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
  return json;
}

absl::StatusOr<std::vector<SafetensorsEntry>> DecodeSafetensorsHeader(absl::string_view json,
                                                                      uint64_t data_bytes) {
  if (json.empty() || json[0] != '{') return absl::DataLossError("header does not begin with '{'");
  auto parsed = ParseStrictJson(json, kHeaderDepth);
  if (!parsed.ok()) return absl::DataLossError(absl::StrCat("header: ", parsed.status().message()));

  std::vector<SafetensorsEntry> entries;
  for (const auto& item : parsed->items()) {
    if (item.key() == kSafetensorsMetadata) {
      LOCKSTEP_RETURN_IF_ERROR(CheckSafetensorsMetadata(item.value()));
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(entries.emplace_back(), DecodeEntry(item.key(), item.value()));
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t expected = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != expected) {
      return Wrong(entry.name, absl::StrCat("begins at byte ", entry.begin, ", expected ", expected,
                                            " (tensors lie without holes or overlap)"));
    }
    expected = entry.end;
  }
  if (expected != data_bytes) {
    return absl::DataLossError(absl::StrCat("tensors end at byte ", expected,
                                            " after the header, the file at ", data_bytes));
  }
  return entries;
}

}  // namespace lockstep
