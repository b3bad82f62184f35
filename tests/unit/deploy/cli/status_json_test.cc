#include "deploy/cli/status_json.h"

#include <google/protobuf/descriptor.h>

#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/doc_fields.h"

namespace lockstep::deploy {
namespace {

using google::protobuf::Descriptor;
using Json = nlohmann::ordered_json;

TEST_CASE("numbers of a status are JSON numbers, those of 64 bits, too") {
  ProcessStatus status;
  status.set_pid(19611);
  status.set_global_step(int64_t{1} << 60);
  status.set_incarnation(std::numeric_limits<uint64_t>::max());
  status.mutable_job()->set_accepted(std::numeric_limits<uint64_t>::max());
  status.mutable_job()->set_loss(0.25);
  status.mutable_job()->add_members()->set_local_step(7);
  const Json json = Json::parse(StatusJson(status));
  CHECK(json["pid"].is_number_integer());
  CHECK(json["pid"] == 19611);
  CHECK(json["global_step"] == int64_t{1} << 60);
  CHECK(json["incarnation"] == std::numeric_limits<uint64_t>::max());
  CHECK(json["job"]["accepted"] == std::numeric_limits<uint64_t>::max());
  CHECK(json["job"]["loss"] == 0.25);
  CHECK(json["job"]["members"][0]["local_step"] == 7);
}

TEST_CASE("a number that is not finite is null, and what is 0 or empty is there") {
  ProcessStatus status;
  status.mutable_job()->set_loss(std::numeric_limits<double>::quiet_NaN());
  status.mutable_job()->set_eta_seconds(std::numeric_limits<double>::infinity());
  const Json json = Json::parse(StatusJson(status));
  CHECK(json["job"]["loss"].is_null());
  CHECK(json["job"]["eta_seconds"].is_null());
  CHECK(json["job"]["asynchronous"] == false);
  CHECK(json["job"]["shards"] == Json::array());
  CHECK(json["state"] == "");
  CHECK_FALSE(json.contains("shard"));
  CHECK_FALSE(json.contains("worker"));
}

TEST_CASE("repeated numbers and nested messages are arrays") {
  ProcessStatus status;
  status.mutable_shard()->add_staleness(5);
  status.mutable_shard()->add_pending()->add_from(2);
  const Json json = Json::parse(StatusJson(status));
  CHECK(json["shard"]["staleness"] == Json({5}));
  CHECK(json["shard"]["pending"][0]["from"] == Json({2}));
}

// `path` names the message in the headings of the page: "job.members".
void CheckDocumented(const Descriptor* message, const std::string& path) {
  INFO("message " << message->name() << ", path \"" << path << "\"");
  const std::string heading = path.empty() ? "Status" : "Status: `" + path + "`";
  std::vector<std::string> fields;
  for (int i = 0; i < message->field_count(); ++i) fields.push_back(message->field(i)->name());
  CHECK(test::DocumentedFields("docs/status.md", heading) == fields);
  for (int i = 0; i < message->field_count(); ++i) {
    const auto* field = message->field(i);
    if (field->message_type() == nullptr) continue;
    CheckDocumented(field->message_type(),
                    path.empty() ? field->name() : path + "." + field->name());
  }
}

TEST_CASE("docs/status.md has every field of a status, in its order, and no other") {
  CheckDocumented(ProcessStatus::descriptor(), "");
}

}  // namespace
}  // namespace lockstep::deploy
