#include "common/config/cluster_json.h"

#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/config/text_file.h"
#include "nlohmann/json.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr char kForm[] =
    "write {\"ps\": [\"host:port\"], \"worker\": [...], \"chief\": [...]}, or that as \"cluster\"";
const std::vector<std::string> kJobs = {"ps", "worker", "chief", "master", "evaluator"};

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, 300)), "\"");
}

// "unexpected string literal; expected ']'" out of the library's longer message.
std::string ParserWords(absl::string_view what) {
  constexpr absl::string_view kBefore = " - ";
  constexpr size_t kMaxLength = 200;
  const size_t start = what.find(kBefore);
  if (start != absl::string_view::npos) what.remove_prefix(start + kBefore.size());
  std::string words(what.substr(0, kMaxLength));
  for (char& c : words) {
    if (!absl::ascii_isprint(c)) c = '?';
  }
  return words;
}

// What is copied and printed recursively must not be nested as deeply as a file has room for.
constexpr int kMostLevels = 16;

// The value, where a key that is written twice in one object is an error: JSON leaves open which
// one counts, and half of a cluster would silently be lost.
absl::StatusOr<json> ParseJson(absl::string_view text) {
  std::vector<std::set<std::string>> keys;
  std::string twice;
  bool is_too_deep = false;
  const auto note = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth >= kMostLevels) {
      is_too_deep = true;
      return false;
    }
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      const std::string& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second && twice.empty()) twice = Quoted(key);
    }
    return true;
  };
  try {
    json value = json::parse(text.begin(), text.end(), note);
    if (is_too_deep) {
      return Invalid("nested deeper than ", kMostLevels, " levels. Remedy: ", kForm);
    }
    if (!twice.empty()) return Invalid("the key ", twice, " is given twice. Remedy: write it once");
    return value;
  } catch (const json::parse_error& error) {
    return Invalid(LineAndColumn(text, error.byte == 0 ? 0 : error.byte - 1),
                   ": not JSON: ", ParserWords(error.what()),
                   ". Remedy: check brackets, quotes and commas here");
  } catch (const json::exception& error) {
    return Invalid("not JSON: ", absl::CHexEscape(error.what()),
                   ". Remedy: check brackets, quotes and commas");
  }
}

absl::StatusOr<std::string> AddressText(absl::string_view where, const json& value) {
  if (value.is_string()) return value.get<std::string>();
  return Invalid(where, ": expected a string \"host:port\", got ", value.type_name(),
                 ". Remedy: write a host and a port in quotes, such as \"node1:2222\"");
}

absl::StatusOr<std::vector<std::string>> AddressList(absl::string_view job, const json& value) {
  std::vector<std::string> addresses;
  for (const json& entry : value) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string address,
                              AddressText(absl::StrCat(job, "[", addresses.size(), "]"), entry));
    addresses.push_back(std::move(address));
  }
  return addresses;
}

// {"0": "host:port", "1": ...}: the keys count from 0 without a gap.
absl::StatusOr<std::vector<std::string>> AddressMap(absl::string_view job, const json& value) {
  for (const auto& [key, entry] : value.items()) {
    bool decimal = !key.empty() && (key == "0" || key[0] != '0');
    for (char c : key) decimal = decimal && absl::ascii_isdigit(c);
    if (!decimal)
      return Invalid(job, ": expected task indices \"0\", \"1\", ... as keys, got ", Quoted(key),
                     ". Remedy: count tasks from 0, or write a list [\"host:port\", ...]");
  }
  std::vector<std::string> addresses;
  while (addresses.size() < value.size()) {
    const auto entry = value.find(absl::StrCat(addresses.size()));
    if (entry == value.end()) {
      return Invalid(job, ": it has ", value.size(), " tasks but none with index ",
                     addresses.size(), ". Remedy: count task indices from 0 without a gap");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(std::string address,
                              AddressText(absl::StrCat(job, "[", addresses.size(), "]"), *entry));
    addresses.push_back(std::move(address));
  }
  return addresses;
}

absl::StatusOr<std::vector<std::string>> Addresses(absl::string_view job, const json& value) {
  if (value.is_array()) return AddressList(job, value);
  if (value.is_object()) return AddressMap(job, value);
  if (value.is_string()) return std::vector<std::string>{value.get<std::string>()};
  return Invalid(job, ": expected a list of \"host:port\", got ", value.type_name(),
                 ". Remedy: write [\"node1:2222\", ...]");
}

absl::StatusOr<ClusterSpec> ParseJobs(const json& jobs) {
  if (!jobs.is_object()) {
    return Invalid("cluster: expected an object {\"ps\": [...], \"worker\": [...], \"chief\": ",
                   "[...]}, got ", jobs.type_name(), ". Remedy: write it so");
  }
  ClusterSpec spec;
  std::vector<std::string> chiefs;
  for (const auto& [job, value] : jobs.items()) {
    if (job == "evaluator") continue;
    if (job != "ps" && job != "worker" && job != "chief" && job != "master") {
      const std::string nearest = Nearest(job, kJobs);
      return Invalid("unknown job ", Quoted(job),
                     nearest.empty() ? "." : absl::StrCat("; did you mean \"", nearest, "\"?"),
                     " Remedy: use ps, worker and chief");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<std::string> addresses, Addresses(job, value));
    auto& target = job == "ps" ? spec.ps : job == "worker" ? spec.workers : chiefs;
    target.insert(target.end(), addresses.begin(), addresses.end());
  }
  if (jobs.contains("chief") && jobs.contains("master")) {
    return Invalid("cluster: both chief and master are given; master is another name for chief. ",
                   "Remedy: list all under chief");
  }
  if (!chiefs.empty()) {
    spec.chief = chiefs[0];
    spec.other_chiefs.assign(chiefs.begin() + 1, chiefs.end());
  }
  return spec;
}

absl::StatusOr<ClusterJson::Task> ParseTask(const json& task) {
  if (!task.is_object() || !task.contains("type") || !task["type"].is_string()) {
    return Invalid("task: expected {\"type\": \"worker\", \"index\": 0}, got ",
                   Quoted(task.dump(-1, ' ', false, json::error_handler_t::replace)),
                   ". Remedy: give type and index");
  }
  ClusterJson::Task parsed{task["type"].get<std::string>()};
  const json index = task.value("index", json(0));
  // TensorFlow calls int(): a string of digits is an index too.
  const bool sound =
      index.is_number_integer()
          ? (index.get<int64_t>() >= 0 && (parsed.index = index.get<int64_t>(), true))
          : index.is_string() &&
                absl::SimpleAtoi(index.get_ref<const std::string&>(), &parsed.index) &&
                parsed.index >= 0;
  if (!sound) {
    return Invalid("task.index: expected 0, 1, 2, ..., got ", Quoted(index.dump()),
                   ". Remedy: count the tasks of each type from 0");
  }
  return parsed;
}

}  // namespace

absl::StatusOr<ClusterJson> ParseClusterJson(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const json value, ParseJson(text));
  if (!value.is_object()) {
    return Invalid("expected a JSON object, got ", value.type_name(), ". Remedy: ", kForm);
  }
  ClusterJson parsed;
  const bool tensorflow = value.contains("cluster") || value.contains("task");
  if (!tensorflow) {
    LOCKSTEP_ASSIGN_OR_RETURN(parsed.cluster, ParseJobs(value));
    return parsed;
  }
  if (!value.contains("cluster")) {
    return Invalid("there is no \"cluster\" beside \"task\". Remedy: ", kForm);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(parsed.cluster, ParseJobs(value["cluster"]));
  if (value.contains("task")) {
    LOCKSTEP_ASSIGN_OR_RETURN(parsed.task, ParseTask(value["task"]));
  }
  return parsed;
}

}  // namespace lockstep
