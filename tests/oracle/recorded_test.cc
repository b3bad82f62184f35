// What TensorFlow answered, asked of our classes; and whether a wrong answer would be seen.
#include <catch2/catch.hpp>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "tests/oracle/recorded_scripts.h"
#include "tests/oracle/replay.h"
#include "tests/oracle/report.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;

const std::vector<std::string> kKinds = {"accumulator", "adamw",       "async_towers", "clipping",
                                         "cluster",     "cross_tower", "ftrl",         "gan",
                                         "local_sync",  "schedule",    "training"};

bool Differs(const Script& script) {
  const absl::StatusOr<Comparison> comparison = Replay(script);
  if (!comparison.ok()) FAIL(script.place << ": " << comparison.status());
  return !comparison->differences().empty();
}

TEST_CASE("our classes answer every recorded script as TensorFlow did") {
  std::ostringstream text;
  Report report(&text);
  for (const std::string& kind : kKinds) {
    const std::vector<Script> scripts = RecordedScripts(kind);
    CHECK(scripts.size() >= 20);
    for (const Script& script : scripts) report.Add(script);
  }
  report.Close();
  INFO(text.str());
  CHECK(report.failed() == 0);
  CHECK(report.passed() >= 150);
}

TEST_CASE("every optimizer, dense and sparse, has been recorded") {
  std::set<std::string> about;
  for (const Script& script : RecordedScripts("training")) about.insert(script.about);
  for (const std::string optimizer :
       {"sgd", "momentum", "nesterov", "adagrad", "adadelta", "rmsprop", "rmsprop_centered", "adam",
        "adamw", "lazy_adam", "ftrl"}) {
    CHECK(about.contains("training " + optimizer + " dense"));
    CHECK(about.contains("training " + optimizer + " sparse"));
  }
}

// In every script another of its tensors, so that each sort of value has its turn.
TEST_CASE("a recorded value that is 1e-4 of its tensor's magnitude off is found in every script") {
  for (const std::string& kind : kKinds) {
    size_t number = 0;
    size_t changed = 0;
    for (Script script : RecordedScripts(kind)) {
      const auto tensors = AnsweredTensors(script);
      if (tensors.empty()) continue;  // float16, or nothing was taken
      const json::json_pointer& at = tensors[number++ % tensors.size()];
      for (const double share : {1e-4, -1e-4}) {
        Script other = script;
        Change(&other.content.at(at), share);
        INFO(script.place << ": " << at.to_string());
        CHECK(Differs(other));
      }
      ++changed;
    }
    INFO(kind);
    CHECK(changed >= 15);
  }
}

// `change` is given entries of the log until it has found something to change.
template <typename ChangeEntry>
void CheckFound(const std::string& kind, ChangeEntry change) {
  for (Script script : RecordedScripts(kind)) {
    for (json& entry : script.content["log"]) {
      if (!change(&entry)) continue;
      INFO(script.place);
      CHECK(Differs(script));
      return;
    }
  }
  FAIL("nothing to change in scripts of kind " << kind);
}

TEST_CASE("a recorded count, step, code or waiting worker that is another one is found") {
  const auto add_one = [](const char* field) {
    return [field](json* entry) {
      if (!entry->contains(field)) return false;
      (*entry)[field] = (*entry)[field].get<int64_t>() + 1;
      return true;
    };
  };
  CheckFound("training", add_one("num_accumulated"));
  CheckFound("training", add_one("global_step"));
  CheckFound("accumulator", add_one("num_accumulated"));
  CheckFound("cluster", add_one("global_step"));
  CheckFound("cluster", [](json* entry) {
    ++(*entry)["local_step"][0].get_ref<json::number_integer_t&>();
    return true;
  });
  CheckFound("cluster", [](json* entry) {
    if ((*entry)["waiting"].empty()) return false;
    (*entry)["waiting"].erase(0);
    return true;
  });
  CheckFound("cluster", [](json* entry) {
    if ((*entry)["finished"].empty()) return false;
    (*entry)["finished"].erase(0);
    return true;
  });
  CheckFound("accumulator", [](json* entry) {
    json& error = (*entry)["error"];
    if (!error.is_object()) return false;
    error = nullptr;
    return true;
  });
  CheckFound("accumulator", [](json* entry) {
    json& completed = (*entry)["completed"];
    if (completed.empty()) return false;
    completed.clear();
    return true;
  });
}

TEST_CASE("a recorded index of a sparse gradient that is another one is found") {
  CheckFound("accumulator", [](json* entry) {
    for (json& take : (*entry)["completed"]) {
      if (!take.contains("indices") || take["indices"].empty()) continue;
      take["indices"][0] = take["indices"][0].get<int64_t>() + 1;
      return true;
    }
    return false;
  });
  CheckFound("cross_tower", [](json* entry) {
    if (!entry->contains("result_indices")) return false;
    for (json& indices : (*entry)["result_indices"]) {
      if (indices.empty()) continue;
      indices[0] = indices[0].get<int64_t>() + 1;
      return true;
    }
    return false;
  });
}

TEST_CASE("a recorded destination or shape of a reduction that is another one is found") {
  CheckFound("cross_tower", [](json* entry) {
    (*entry)["destinations"].push_back(99);
    return true;
  });
  CheckFound("cross_tower", [](json* entry) {
    (*entry)["result_shape"].push_back(1);
    return true;
  });
}

TEST_CASE("loads and towers have been recorded with all that changes their way") {
  std::map<std::string, int> loads, pushes;
  for (const Script& script : RecordedScripts("local_sync")) {
    const json& content = script.content;
    ++loads["scripts"];
    ++loads[content.at("batch_norm_updates")];
    ++loads["towers: " + content.at("towers").dump()];
    if (!content.at("global_norm").is_null()) ++loads["clipped"];
    for (const json& entry : content.at("log")) {
      if (entry.value("batch_index", 0) > 0) ++loads["later batches"];
      if (!entry.contains("features")) continue;
      const int64_t kept =
          entry.at("tuples_per_device").get<int64_t>() * content.at("towers").get<int64_t>();
      if (kept < static_cast<int64_t>(entry.at("features").size())) ++loads["truncated"];
    }
  }
  CHECK(loads["scripts"] >= 24);
  for (const char* way :
       {"EVERY_TOWER", "MEAN", "FIRST_TOWER", "towers: 1", "towers: 2", "towers: 3", "towers: 4"}) {
    INFO(way);
    CHECK(loads[way] >= 2);
  }
  for (const char* way : {"clipped", "later batches", "truncated"}) {
    INFO(way);
    CHECK(loads[way] >= 8);
  }
  for (const Script& script : RecordedScripts("async_towers")) {
    ++pushes["scripts"];
    ++pushes[script.content.at("optimizer")];
    if (script.content.at("towers") > 1 && script.content.at("scale_gradient")) ++pushes["scaled"];
  }
  CHECK(pushes["scripts"] >= 24);
  CHECK(pushes["momentum"] >= 10);
  CHECK(pushes["nesterov"] >= 2);
  CHECK(pushes["scaled"] >= 6);
}

TEST_CASE("losses that take turns have been recorded over two cycles, with and without momentum") {
  std::map<std::string, int> scripts;
  for (const Script& script : RecordedScripts("gan")) {
    ++scripts["all"];
    CHECK(script.content.at("log").size() == 22);
    for (const json& loss : script.content.at("losses")) {
      ++scripts[loss.at("optimizer").at("momentum") > 0 ? "momentum" : "plain"];
    }
  }
  CHECK(scripts["all"] >= 24);
  CHECK(scripts["momentum"] >= 12);
  CHECK(scripts["plain"] >= 12);
}

TEST_CASE("a recorded size of a load that is another one is found") {
  for (const char* field : {"tuples_per_device", "per_device_batch_size"}) {
    CheckFound("local_sync", [field](json* entry) {
      if (!entry->contains(field)) return false;
      (*entry)[field] = (*entry)[field].get<int64_t>() * 2;
      return true;
    });
  }
}

TEST_CASE("every cross-tower op has been recorded with all that changes its way") {
  std::map<std::string, int> scripts;
  for (const Script& script : RecordedScripts("cross_tower")) {
    const std::string op = script.content.at("op");
    ++scripts[op];
    if (script.content.at("num_packs") > 1) ++scripts[op + " in packs"];
    if (!script.content.at("reduce_to_device").is_null()) ++scripts[op + " to a device"];
    if (script.content.at("accumulation") == "maximum") ++scripts[op + " by maximum"];
    for (const json& entry : script.content.at("log")) {
      if (entry.contains("indices")) ++scripts[op + " of slices"];
      if (entry.at("destinations") != entry.at("devices")) ++scripts[op + " to others"];
    }
  }
  for (const std::string op : {"reduction_to_one_device", "hierarchical_copy"}) {
    CHECK(scripts[op] >= 12);
    CHECK(scripts[op + " of slices"] >= 5);
    CHECK(scripts[op + " to others"] >= 5);
  }
  CHECK(scripts["hierarchical_copy in packs"] >= 5);
  CHECK(scripts["reduction_to_one_device to a device"] >= 3);
  CHECK(scripts["reduction_to_one_device by maximum"] >= 2);
}

}  // namespace
}  // namespace lockstep::oracle
