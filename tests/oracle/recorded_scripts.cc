#include "tests/oracle/recorded_scripts.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

namespace lockstep::oracle {
namespace {

using nlohmann::json;
using Pointers = std::vector<json::json_pointer>;

// The first number of the largest magnitude; null where there is none but zeros and names.
json* LargestIn(json* nested) {
  if (nested->is_number()) return *nested == 0.0 ? nullptr : nested;
  json* largest = nullptr;
  if (!nested->is_array()) return largest;
  for (json& element : *nested) {
    json* const found = LargestIn(&element);
    if (found == nullptr) continue;
    const bool is_larger =
        largest == nullptr || std::abs(found->get<double>()) > std::abs(largest->get<double>());
    if (is_larger) largest = found;
  }
  return largest;
}

Pointers TensorsOfEntry(const json& entry, const json::json_pointer& at) {
  Pointers tensors;
  for (const char* field : {"learning_rate", "variable", "average", "device_losses", "loss"}) {
    if (entry.contains(field)) tensors.push_back(at / field);
  }
  if (entry.contains("variables")) {
    for (const auto& [name, value] : entry["variables"].items()) {
      tensors.push_back(at / "variables" / name);
    }
  }
  if (entry.contains("result")) {
    for (size_t i = 0; i < entry["result"].size(); ++i) tensors.push_back(at / "result" / i);
  }
  if (entry.contains("completed")) {
    for (size_t i = 0; i < entry["completed"].size(); ++i) {
      tensors.push_back(at / "completed" / i / "values");
    }
  }
  return tensors;
}

Pointers AllTensors(const Script& script) {
  Pointers tensors;
  if (script.kind == "schedule") {
    for (size_t i = 0; i < script.content.at("values").size(); ++i) {
      tensors.push_back(json::json_pointer("/values") / i / 1);
    }
  } else if (script.kind == "clipping") {
    tensors.push_back(json::json_pointer("/norm"));
    for (size_t i = 0; i < script.content.at("clipped").size(); ++i) {
      tensors.push_back(json::json_pointer("/clipped") / i);
    }
  } else if (script.content.value("dtype", "float32") != "float16") {
    const json& log = script.content.at("log");
    for (size_t i = 0; i < log.size(); ++i) {
      const Pointers of_entry = TensorsOfEntry(log[i], json::json_pointer("/log") / i);
      tensors.insert(tensors.end(), of_entry.begin(), of_entry.end());
    }
  }
  return tensors;
}

}  // namespace

std::vector<Script> RecordedScripts(const std::string& kind) {
  auto scripts = ReadScripts("tests/oracle/scripts");
  if (!scripts.ok()) FAIL(scripts.status().ToString());
  std::erase_if(*scripts, [&](const Script& script) { return script.kind != kind; });
  return *std::move(scripts);
}

Pointers AnsweredTensors(const Script& script) {
  Pointers tensors = AllTensors(script);
  std::erase_if(tensors, [&](const json::json_pointer& at) {
    json tensor = script.content.at(at);
    return LargestIn(&tensor) == nullptr;
  });
  return tensors;
}

void Change(json* tensor, double share) {
  const double largest = std::abs(LargestIn(tensor)->get<double>());
  json* element = tensor;
  while (element->is_array()) element = &element->back();
  if (!element->is_number()) element = LargestIn(tensor);
  *element = element->get<double>() + share * largest;
}

}  // namespace lockstep::oracle
