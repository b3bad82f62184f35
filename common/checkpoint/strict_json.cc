#include "common/checkpoint/strict_json.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

// Builds the value from the parser's events; false ends the parse.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return Leaf(nullptr); }
  bool boolean(bool value) override { return Leaf(value); }
  bool number_integer(int64_t value) override { return Leaf(value); }
  bool number_unsigned(uint64_t value) override { return Leaf(value); }
  bool number_float(double value, const std::string&) override { return Leaf(value); }
  bool string(std::string& value) override { return Leaf(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }

  bool start_object(size_t) override { return Open(Json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }

  bool key(std::string& value) override {
    if (open_.back()->contains(value)) {
      error_ =
          absl::StrCat("the key '", absl::CEscape(value.substr(0, kShown)), "' is given twice");
      return false;
    }
    key_ = std::move(value);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    error_ = absl::StrCat("not JSON at byte ", position);
    return false;
  }

  absl::StatusOr<Json> Take(bool parsed) && {
    if (!parsed) return absl::DataLossError(error_);
    return std::move(root_);
  }

 private:
  static constexpr size_t kShown = 80;

  Json& Add(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    Json& parent = *open_.back();
    if (parent.is_object()) return parent[key_] = std::move(value);
    parent.push_back(std::move(value));
    return parent.back();
  }

  bool Leaf(Json value) {
    Add(std::move(value));
    return true;
  }

  bool Open(Json empty) {
    if (static_cast<int>(open_.size()) == max_depth_) {
      error_ = absl::StrCat("nested deeper than ", max_depth_, " levels");
      return false;
    }
    open_.push_back(&Add(std::move(empty)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  const int max_depth_;
  Json root_;
  // From the root to where the next value goes. Containers being built do not move: only the last
  // one grows.
  std::vector<Json*> open_;
  std::string key_;
  std::string error_;
};

}  // namespace

absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text, int max_depth) {
  // The parser takes a zero byte for the end and would not look at what follows.
  const size_t zero = text.find('\0');
  if (zero != absl::string_view::npos)
    return absl::DataLossError(absl::StrCat("not JSON at byte ", zero + 1));
  Builder builder(max_depth);
  const bool parsed = Json::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder).Take(parsed);
}

absl::StatusOr<Shape> ShapeFromJson(const nlohmann::json& json) {
  if (!json.is_array()) return absl::DataLossError("shape is not a list");
  if (json.size() > Shape::kMaxRank) {
    return absl::DataLossError(absl::StrCat("shape of rank ", json.size(), ", at most ",
                                            Shape::kMaxRank, " is supported"));
  }
  std::vector<int64_t> dims;
  for (const Json& dim : json) {
    if (!dim.is_number_unsigned() || dim.get<uint64_t>() > INT64_MAX)
      return absl::DataLossError("shape has an extent that is not a whole number");
    dims.push_back(static_cast<int64_t>(dim.get<uint64_t>()));
  }
  auto shape = Shape::Create(dims);
  if (!shape.ok()) return absl::DataLossError(shape.status().message());
  return shape;
}

}  // namespace lockstep
