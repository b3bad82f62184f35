#include "common/config/text_proto.h"

#include <catch2/catch.hpp>

#include "proto/cluster.pb.h"
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

TEST_CASE("An unknown field names its place, the nearest field, and all that there are in order") {
  CHECK(ErrorOf<JobDef>("name: 'x'\n  mx_steps: 5") ==
        "f.textproto:2:3: unknown field \"mx_steps\" in the job; did you mean \"max_steps\"? "
        "Remedy: use one of max_steps, batch_norm_updates, batch_per_tower, checkpoint, data, "
        "data_epochs, evaluation, global_batch, local, local_sync, losses, max_part_bytes, model, "
        "name, "
        "optimizer, precision, seed, strategy, sync, towers, transport");
  CHECK_THAT(ErrorOf<JobDef>("sync { replicas_to_agregate: 2 }"),
             Contains("in sync; did you mean \"replicas_to_aggregate\"? Remedy: use one of "
                      "replicas_to_aggregate, asynchronous, init_tokens, "));
  CHECK_THAT(ErrorOf<JobDef>("optimizer { adam { beta: 1 } }"),
             Contains("unknown field \"beta\" in adam; did you mean \"beta1\"?"));
  CHECK_THAT(ErrorOf<ModelDef>("layers { max_pool { kernel: 2 } }"),
             Contains("unknown field \"kernel\" in max_pool or average_pool"));
  CHECK_THAT(ErrorOf<JobDef>("optimizer { sgd { rate: 1 } }"), Contains("leave this block empty"));
  CHECK_THAT(ErrorOf<ModelDef>("layers { dense { units: 3 activation: 'relu' } }"),
             Contains("unknown field \"activation\" in dense. Remedy: write it as a layer"));
  CHECK_THAT(ErrorOf<ModelDef>("layers { dense { units: 3 weights: 'relu' } }"),
             Contains("unknown field \"weights\" in dense. Remedy: use one of bias_initializer"));
}

TEST_CASE("A field that shares a word with the one that was meant leads to it") {
  CHECK_THAT(
      ErrorOf<JobDef>("batch_size: 3"),
      Contains("did you mean \"global_batch\", \"batch_per_tower\" or \"batch_norm_updates\"? "
               "Remedy: use one of "
               "global_batch, batch_per_tower, batch_norm_updates, checkpoint"));
  CHECK_THAT(ErrorOf<JobDef>("epochs: 3"), Contains("did you mean \"data_epochs\"?"));
}

TEST_CASE("A bracket in the text before a block is not taken for a list") {
  CHECK(ErrorOf<ModelDef>("layers { name: 'a shape: [' dense 1 }") ==
        "f.textproto:1:35: expected \"{\", got \"1\". Remedy: a field is written name: value or "
        "name { ... }");
}

TEST_CASE("A field that stands in a block around the wrong one is sent there") {
  CHECK_THAT(ErrorOf<JobDef>("optimizer { adam { learning_rate { base: 0.1 } } }"),
             Contains("unknown field \"learning_rate\" in adam: it stands in optimizer, beside "
                      "adam. Remedy: move it there"));
  CHECK_THAT(ErrorOf<JobDef>("data { csv { train: 'x' }\nglobal_batch: 5"),
             Contains("f.textproto:2:1: unknown field \"global_batch\" in data: it stands in the "
                      "job, beside data. Remedy: move it there; is a } missing above?"));
}

TEST_CASE("A field of another block or of another file is recognised") {
  CHECK_THAT(ErrorOf<JobDef>("shuffle_buffer: 3"), Contains("in the job; it is a field of data."));
  CHECK_THAT(ErrorOf<JobDef>("input_shape: 3"),
             Contains("it is a field of model files. Remedy: give the file of the job here"));
  CHECK_THAT(ErrorOf<ModelDef>("max_steps: 3"), Contains("it is a field of job files"));
  CHECK_THAT(ErrorOf<ClusterDef>("optimizer {}"), Contains("it is a field of job files"));
}

TEST_CASE("A value in the place of a block, or a block in the place of a value, is rewritten") {
  const auto remedy = [](const std::string& error) {
    return error.substr(error.find("Remedy: ") + 8);
  };
  CHECK(ErrorOf<JobDef>("optimizer { sgd {} learning_rate: 0.002 }") ==
        "f.textproto:1:35: learning_rate: expected \"{\", got \"0.002\". Remedy: write "
        "learning_rate { base: 0.002 }");
  CHECK(remedy(ErrorOf<JobDef>("optimizer: adam")) == "write optimizer { adam { ... } }");
  CHECK(remedy(ErrorOf<JobDef>("evaluation: 100")) == "write evaluation { every_steps: 100 }");
  CHECK(remedy(ErrorOf<JobDef>("data: 'x'")) == "write data { ... }");
  CHECK(remedy(ErrorOf<JobDef>("max_steps { 5 }")) == "write max_steps: 100");
  CHECK(remedy(ErrorOf<JobDef>("name = 'x'")) == "write name: \"text\"");
}

TEST_CASE("A value of a wrong kind names its field and how it is written") {
  CHECK(ErrorOf<JobDef>("max_steps: ten") ==
        "f.textproto:1:12: max_steps: expected a whole number, got \"ten\". Remedy: write it like "
        "max_steps: 100");
  CHECK_THAT(ErrorOf<JobDef>("seed: -1"), Contains("seed: expected a whole number from 0 on"));
  CHECK_THAT(ErrorOf<JobDef>("data { csv { train: train.csv } }"),
             Contains("train: expected a text in quotes, got \"train\""));
  CHECK_THAT(ErrorOf<JobDef>("evaluation { not_at_end: yes }"),
             Contains("1:26: not_at_end: expected true or false, got \"yes\""));
  CHECK_THAT(ErrorOf<ModelDef>("input_shape: [2, x]"),
             Contains("input_shape: expected a whole number, got \"x\""));
  CHECK_THAT(ErrorOf<JobDef>("max_steps: 99999999999999999999"),
             Contains("max_steps: expected a number of 64 bits, got 99999999999999999999"));
}

TEST_CASE("Text in another format is recognised") {
  CHECK_THAT(ErrorOf<JobDef>("// a comment"), Contains("begin comments with #"));
  CHECK_THAT(ErrorOf<JobDef>("{ \"name\": 'x' }"), Contains("not JSON"));
  CHECK_THAT(ErrorOf<JobDef>("\"name\": 'x'"), Contains("names of fields without quotes"));
  CHECK_THAT(ErrorOf<JobDef>("data { scale: 1,5 }"), Contains("decimals with a point"));
  CHECK_THAT(ErrorOf<JobDef>("}"), Contains("there is no { for this }"));
  CHECK_THAT(ErrorOf<JobDef>("data {"), Contains("close each { with a }"));
  CHECK_THAT(ErrorOf<JobDef>("data { csv { train: 'a.csv test: 'b.csv' } }"),
             Contains("1:35: expected a field, got \"b\" behind a quote. Remedy: close the text "
                      "before it; is a quote missing on this line?"));
  CHECK_THAT(ErrorOf<JobDef>("data { csv { train: 'a.csv test: 'test.csv' } }"),
             Contains("expected a field, got \"test\" behind a quote"));
  CHECK_THAT(ErrorOf<JobDef>("name: 'open"), Contains("add the quote at its end"));
}

TEST_CASE("Columns are those of an editor, tabs or not") {
  CHECK_THAT(ErrorOf<JobDef>("\t\tnonsense: 1"), StartsWith("f.textproto:1:3: "));
  CHECK_THAT(ErrorOf<JobDef>("name: 'a' \t nonsense: 1"), StartsWith("f.textproto:1:13: "));
}

TEST_CASE("Mistakes in values name what is possible") {
  CHECK_THAT(ErrorOf<JobDef>("sync { token_policy: PER_REPLCA }"),
             Contains("token_policy: unknown value \"PER_REPLCA\"; did you mean PER_REPLICA? "
                      "Remedy: use one of PER_REPLICA, FIFO"));
  CHECK_THAT(ErrorOf<JobDef>("transport { wire_type: BF16 }"),
             Contains("Remedy: use one of BFLOAT16, FLOAT16, FLOAT32") && !Contains("INT32"));
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
