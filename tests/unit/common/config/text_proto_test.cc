#include "common/config/text_proto.h"

#include <catch2/catch.hpp>

#include "proto/job.pb.h"
#include "proto/model.pb.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

template <typename Message>
std::string ErrorOf(const std::string& text) {
  Message message;
  const absl::Status status = ParseTextProto("f.textproto", text, &message);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()), Contains("Remedy: "));
  CHECK_THAT(std::string(status.message()), !Contains("\n"));
  return std::string(status.message());
}

TEST_CASE("An unknown field names its place and the fields that there are") {
  CHECK(ErrorOf<JobDef>("name: 'x'\n  mx_steps: 5") ==
        "f.textproto:2:3: unknown field \"mx_steps\" in JobDef. Remedy: use one of max_steps, "
        "model, towers, seed, name, data, sync, data_epochs, local, transport, optimizer, "
        "evaluation, "
        "max_part_bytes, checkpoint, global_batch, batch_per_tower");
  CHECK_THAT(ErrorOf<JobDef>("optimizer { adam { beta: 1 } }"),
             Contains("unknown field \"beta\" in Adam. Remedy: use one of beta1, beta2, "));
  CHECK_THAT(ErrorOf<JobDef>("optimizer { sgd { rate: 1 } }"), Contains("leave it empty: {}"));
  CHECK_THAT(ErrorOf<ModelDef>("layers { dense { units: 3 activation: 'relu' } }"),
             Contains("unknown field \"activation\" in Dense"));
}

TEST_CASE("Columns are those of an editor, tabs or not") {
  CHECK_THAT(ErrorOf<JobDef>("\t\tnonsense: 1"), StartsWith("f.textproto:1:3: "));
  CHECK_THAT(ErrorOf<JobDef>("name: 'a' \t nonsense: 1"), StartsWith("f.textproto:1:13: "));
}

TEST_CASE("Mistakes in values name what is possible") {
  CHECK_THAT(ErrorOf<JobDef>("sync { token_policy: PER_REPLCA }"),
             Contains("token_policy: unknown value \"PER_REPLCA\". Remedy: use one of PER_REPLICA, "
                      "FIFO"));
  CHECK_THAT(ErrorOf<JobDef>("max_steps: 1\nmax_steps: 2"),
             Contains("f.textproto:2:1: max_steps: it is given twice"));
  CHECK_THAT(ErrorOf<ModelDef>("layers { relu {} dense { units: 1 } }"),
             Contains("dense: it excludes relu, which is given too"));
  for (const char* text : {"max_steps: ten", "max_steps: 99999999999999999999", "max_steps: 1.5",
                           "seed: -1", "name: unquoted", "name: 'open", "data {", "data }", "}",
                           "max_steps 5", "name: 'a' 'b' 7", "\x01"}) {
    CAPTURE(text);
    CHECK_THAT(ErrorOf<JobDef>(text), StartsWith("f.textproto:1:"));
  }
}

TEST_CASE("A long or strange name gives one short printable line") {
  const std::string error = ErrorOf<JobDef>(std::string(100000, 'x') + ": 1");
  CHECK(error.size() < 1000);
  CHECK(ErrorOf<JobDef>("name: '" + std::string(100000, 'x')).size() < 1000);
}

TEST_CASE("A sound text is read") {
  JobDef job;
  CHECK(ParseTextProto("f", "name: 'x'  # comment\n sync { replicas_to_aggregate: 2 }", &job).ok());
  CHECK(job.sync().replicas_to_aggregate() == 2);
  CHECK(ParseTextProto("f", "", &job).ok());
}

}  // namespace
}  // namespace lockstep
