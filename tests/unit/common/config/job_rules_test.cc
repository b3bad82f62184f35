#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"
#include "common/config/job.h"
#include "tests/unit/common/config/job_parts.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;
using namespace job_parts;

// The error of a sound job with one part replaced.
std::string ErrorOf(const std::string& job) {
  const auto loaded = Load(job);
  REQUIRE_FALSE(loaded.ok());
  CHECK(ExitCodeFor(loaded.status()) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(loaded.status().message()), Contains("job.textproto: "));
  CHECK_THAT(std::string(loaded.status().message()), Contains("Remedy: "));
  return std::string(loaded.status().message());
}

std::string WithData(const std::string& data) {
  return ErrorOf(std::string(kModelPath) + kBatch + kOptimizer + kStop + "data {" + data + "}");
}

std::string With(const std::string& field) {
  return ErrorOf(std::string(kModelPath) + kData + kBatch + kOptimizer + kStop + field);
}

TEST_CASE("A job without one of its parts names the part") {
  REQUIRE(Load(std::string(kModelPath) + kData + kBatch + kOptimizer + kStop).ok());
  CHECK_THAT(ErrorOf(std::string(kData) + kBatch + kOptimizer + kStop),
             Contains("model: it is missing"));
  CHECK_THAT(ErrorOf(std::string(kModelPath) + kBatch + kOptimizer + kStop),
             Contains("data: expected one of idx, csv and text, got none"));
  CHECK_THAT(ErrorOf(std::string(kModelPath) + kData + kOptimizer + kStop),
             Contains("global_batch: expected one of global_batch and batch_per_tower, got none"));
  CHECK_THAT(ErrorOf(std::string(kModelPath) + kData + kBatch + kStop),
             Contains("optimizer: it is missing"));
  CHECK_THAT(ErrorOf(std::string(kModelPath) + kData + kBatch + kOptimizer),
             Contains("max_steps: expected one of max_steps and data_epochs, got none"));
}

TEST_CASE("Fields that exclude each other, and numbers out of range, are refused") {
  struct Case {
    const char* field;
    const char* error;
  };
  for (const Case& c : {
           Case{"batch_per_tower: 4", "expected one of global_batch and batch_per_tower, got both"},
           Case{"local_sync {}",
                "local_sync: it replaces the batch, but global_batch is given too"},
           Case{"batch_norm_updates: 7", "batch_norm_updates: expected BATCH_NORM_UPDATES_UNSPEC"},
           Case{"data_epochs: 2", "expected one of max_steps and data_epochs, got both"},
           Case{"towers: -1", "towers: expected a number from 0 to 256, got -1"},
           Case{"evaluation { every_steps: 5 }", "evaluation.every_steps: there is no test set"},
           Case{"evaluation { every_steps: -5 }", "evaluation.every_steps: expected"},
           Case{"evaluation { batch: -1 }", "evaluation.batch: expected"},
           Case{"evaluation { use_averages: true }",
                "evaluation.use_averages: there are no averages"},
           Case{"checkpoint { every_steps: 5 }", "checkpoint.folder: it is missing"},
           Case{"checkpoint { folder: 'c' keep_last: -1 }", "checkpoint.keep_last: expected"},
           Case{"checkpoint { folder: 'c\\000d' }", "checkpoint.folder: there is a NUL"},
           Case{"transport { shared_memory: 7 }",
                "transport.shared_memory: expected COPY, MAP or OFF, got 7"},
           Case{"transport { wire_type: FLOAT64 }",
                "transport.wire_type: expected FLOAT32, BFLOAT16 or FLOAT16, got FLOAT64"},
           Case{"local { ps: 1 }", "local.workers: expected a number from 1"},
           Case{"local { workers: 1 }", "local.ps: expected a number from 1"},
           Case{"sync { replicas_to_aggregate: 0 }",
                "sync.replicas_to_aggregate: expected a number from 1"},
           Case{"sync { replicas_to_aggregate: -2 }", "sync.replicas_to_aggregate: expected"},
           Case{"sync { token_policy: 7 }",
                "sync.token_policy: expected PER_REPLICA or FIFO, got 7"},
           Case{"sync { quorum_policy: 9 }", "sync.quorum_policy: expected"},
           Case{"sync { init_tokens: 2 }", "sync.init_tokens: only FIFO"},
           Case{"sync { token_policy: FIFO init_tokens: -2 }", "sync.init_tokens: expected"},
           Case{"sync { token_policy: FIFO quorum_policy: SHRINK }",
                "sync.quorum_policy: SHRINK counts replicas"},
           Case{"sync { non_finite: 9 }", "sync.non_finite: expected"},
           Case{"sync { asynchronous {} replicas_to_aggregate: 2 }",
                "sync.replicas_to_aggregate: an asynchronous job applies each gradient by itself"},
           Case{"sync { asynchronous {} token_policy: FIFO }",
                "sync.token_policy: an asynchronous job has no tokens. Remedy: remove it, or"},
           Case{"sync { asynchronous {} init_tokens: 2 }", "sync.init_tokens: an asynchronous job"},
           Case{"sync { asynchronous {} quorum_policy: ABORT }",
                "sync.quorum_policy: an asynchronous job goes on as long as one worker lives"},
           Case{"sync { asynchronous {} } strategy { parameter_server { ps_device: GPU } }",
                "strategy.parameter_server.ps_device: with sync { asynchronous {} } every tower"},
           Case{"sync { asynchronous { max_staleness: -1 } }",
                "sync.asynchronous.max_staleness: expected a number from 0"},
       }) {
    CAPTURE(c.field);
    CHECK_THAT(With(c.field), Contains(c.error));
  }
  const std::string parts = std::string(kModelPath) + kData + kOptimizer;
  CHECK_THAT(ErrorOf(parts + kStop + "global_batch: -1"), Contains("global_batch: expected"));
  CHECK_THAT(ErrorOf(parts + kStop + "batch_per_tower: -1"), Contains("batch_per_tower: expected"));
  CHECK_THAT(ErrorOf(parts + kBatch + "max_steps: -1"), Contains("max_steps: expected 1 to"));
  CHECK_THAT(ErrorOf(parts + kBatch + "max_steps: 9000000000000000000"),
             Contains("max_steps: expected 1 to"));
  const auto local_sync = [&](const char* text) { return ErrorOf(parts + kStop + text); };
  CHECK_THAT(local_sync("local_sync {} batch_per_tower: 4"),
             Contains("local_sync: it replaces the batch, but batch_per_tower is given too"));
  CHECK_THAT(local_sync("local_sync { max_per_device_batch_size: -1 }"),
             Contains("local_sync.max_per_device_batch_size: expected a number from 0"));
  CHECK_THAT(local_sync("local_sync { load: -1 }"), Contains("local_sync.load: expected"));
  CHECK_THAT(local_sync("local_sync { passes: -1 }"), Contains("local_sync.passes: expected"));
  CHECK_THAT(local_sync("local_sync {} sync { asynchronous {} }"),
             Contains("local_sync: all towers of a worker take a batch of its load together"));
  CHECK_THAT(
      ErrorOf(std::string(kModelPath) + kOptimizer + kStop +
              "local_sync {} data { idx { train_images: 'a' train_labels: 'b' } prefetch: 4 }"),
      Contains("data.prefetch: it counts batches, and local_sync prepares one load ahead"));
  CHECK_THAT(ErrorOf(std::string(kModelPath) + kOptimizer + kStop +
                     "local_sync {} data { idx { train_images: 'a' train_labels: 'b' } "
                     "auto_shard: OFF }"),
             Contains("data.auto_shard: local_sync divides the stream of all examples"));
  CHECK_THAT(ErrorOf(std::string(kModelPath) + kOptimizer + kStop +
                     "local_sync {} data { idx { train_images: 'a' train_labels: 'b' } "
                     "transform { repeat {} } transform { batch {} } }"),
             Contains("data.transform: local_sync divides the stream of all examples"));
  for (const char* epochs : {"-1", "nan", "inf"}) {
    CHECK_THAT(ErrorOf(parts + kBatch + "data_epochs: " + epochs),
               Contains("data_epochs: expected a positive number"));
  }
}

TEST_CASE("Transformations that contradict each other or other fields are refused") {
  struct Case {
    std::string data;
    const char* error;
  };
  const std::string idx = "idx { train_images: 'a' train_labels: 'b' } ";
  const std::string batch = "transform { batch {} } ";
  const std::string scale = "transform { map { function: 'scale' } } ";
  const std::string shift = "transform { map { function: 'shift' } } ";
  for (const Case& c : {
           Case{"transform { repeat {} }", "data.transform: expected batch once, got it 0 times"},
           Case{batch + batch, "expected batch once, got it 2 times"},
           Case{batch + "transform {}", "data.transform[1]: it has no kind"},
           Case{batch + "transform { repeat { count: -1 } }", "data.transform[1].repeat.count"},
           Case{batch + "transform { shuffle {} }", "data.transform[1].shuffle.buffer: expected"},
           Case{batch + "transform { map { function: 'flip' } }",
                "data.transform[1].map.function: expected \"scale\" or \"shift\", got \"flip\""},
           Case{batch + "transform { prefetch {} }", "prefetch.batches: expected a number from 1"},
           Case{"transform { prefetch { batches: 2 } } " + batch, "it is not the last step"},
           Case{"auto_shard: FILE transform { shard {} } " + batch, "auto_shard: FILE has given"},
           Case{"transform { shard {} } transform { shard {} } " + batch, "shard comes twice"},
           Case{scale + scale + batch, "map \"scale\" comes twice"},
           Case{"scale: 0.5 " + batch, "offset or scale is given, and no map \"scale\""},
           Case{"offset: 1 " + batch, "offset or scale is given, and no map \"scale\""},
           Case{shift + batch, "map \"shift\" is given, and no augmentation.shift"},
           Case{"augmentation { shift: 1 } " + batch, "augmentation.shift is given, and no map"},
           Case{"augmentation { shift: 1 } " + shift + scale + batch, "comes before map \"scale\""},
           Case{"shuffle_buffer: 4 " + batch, "data.shuffle_buffer: transform is given too"},
           Case{"no_shuffle: true " + batch, "data.no_shuffle: transform is given too"},
           Case{"prefetch: 2 " + batch, "data.prefetch: transform is given too"},
           Case{"auto_shard: 7", "data.auto_shard: expected RECORD, FILE or OFF, got 7"},
       }) {
    CAPTURE(c.data);
    CHECK_THAT(WithData(idx + c.data), Contains(c.error));
  }
}

TEST_CASE("Data files come in one format, whole") {
  const std::string idx = "idx { train_images: 'a' train_labels: 'b' } ";
  CHECK_THAT(WithData(idx + "csv { train: 'c' label_column: '0' }"), Contains("text, got 2"));
  CHECK_THAT(WithData("idx { train_images: 'a' }"),
             Contains("data.idx.train_labels: it is missing"));
  CHECK_THAT(WithData("idx { train_images: 'a' train_labels: 'b' test_images: 'c' }"),
             Contains("data.idx.test_labels: it is missing"));
  CHECK_THAT(WithData("idx { train_images: ['a', 'c'] train_labels: 'b' }"),
             Contains("data.idx.train_labels: expected 2 files, one for each of train_images"));
  CHECK_THAT(WithData("csv { train: ['c', ''] label_column: 'y' }"),
             Contains("data.csv.train: it is missing"));
  CHECK_THAT(WithData("csv { label_column: 'y' }"), Contains("data.csv.train: it is missing"));
  CHECK_THAT(WithData("csv { train: 'c' }"), Contains("data.csv.label_column: it is missing"));
  CHECK_THAT(WithData("csv { train: 'c' label_column: 'y' no_header: true }"),
             Contains("a file without a header has no column \"y\""));
  CHECK_THAT(WithData(idx + "scale: inf"), Contains("data.scale: expected a finite number"));
  CHECK_THAT(WithData(idx + "offset: nan"), Contains("data.offset: expected a finite number"));
  CHECK_THAT(WithData(idx + "shuffle_buffer: 9 no_shuffle: true"), Contains("keep one of the two"));
  CHECK_THAT(WithData(idx + "prefetch: 100000"), Contains("data.prefetch: expected"));
  CHECK_THAT(WithData(idx + "num_classes: -1"), Contains("data.num_classes: expected"));
  CHECK_THAT(WithData(idx + "augmentation { shift: -1 }"), Contains("data.augmentation.shift"));
  CHECK_THAT(WithData(idx + "augmentation { shift: 8 }"),
             Contains("expected less than the image [8,8,1] is wide, got 8"));
}

// A job with this sync { ... }, as far as ValidateJob looks at it.
JobDef Synchronous(const std::string& sync) {
  JobDef job;
  REQUIRE(
      google::protobuf::TextFormat::ParseFromString("global_batch: 12 sync {" + sync + "}", &job));
  return job;
}

TEST_CASE("The number of workers completes the job") {
  JobDef job = Synchronous("");
  job.set_towers(2);
  for (int call = 0; call < 2; ++call) {  // again changes nothing
    REQUIRE(ValidateJob(&job, 3).ok());
    CHECK(job.sync().replicas_to_aggregate() == 3);
    CHECK_FALSE(job.sync().has_init_tokens());
    CHECK(job.global_batch() == 12);
    CHECK(job.batch_per_tower() == 2);
  }
  JobDef per_tower;
  per_tower.set_batch_per_tower(5);
  REQUIRE(ValidateJob(&per_tower, 3).ok());
  CHECK(per_tower.global_batch() == 15);
}

TEST_CASE("A job with local_sync has the batch of a full load") {
  const auto loaded =
      Load(std::string(kModelPath) + kData + kOptimizer + kStop + "towers: 2 local_sync {}");
  REQUIRE(loaded.ok());
  JobDef job = loaded->job;
  CHECK(job.local_sync().max_per_device_batch_size() == 256);
  CHECK(job.local_sync().load() == 8192);
  CHECK(job.local_sync().passes() == 8);
  CHECK(job.batch_norm_updates() == JobDef::EVERY_TOWER);
  for (int call = 0; call < 2; ++call) {
    REQUIRE(ValidateJob(&job, 4).ok());
    CHECK(job.batch_per_tower() == 256);
    CHECK(job.global_batch() == 2048);
  }
  job.mutable_local_sync()->set_load(24);  // 6 for each worker, 3 for each tower
  REQUIRE(ValidateJob(&job, 4).ok());
  CHECK(job.batch_per_tower() == 3);
  const auto error = [&job](int64_t load) {
    job.mutable_local_sync()->set_load(load);
    return std::string(ValidateJob(&job, 4).message());
  };
  CHECK_THAT(error(25),
             Contains("local_sync.load: expected a multiple of 4, the number of workers, "
                      "got 25. Remedy: use 28"));
  CHECK_THAT(error(4), Contains("Must load at least 1 tuple sequence per device, got only 1"));
  const auto plain = Load(std::string(kModelPath) + kData + kBatch + kOptimizer + kStop);
  REQUIRE(plain.ok());
  CHECK(plain->job.batch_norm_updates() == JobDef::MEAN);
  CHECK_FALSE(plain->job.has_local_sync());
}

TEST_CASE("An asynchronous job has neither replicas to aggregate nor tokens") {
  JobDef job = Synchronous("asynchronous { max_staleness: 0 }");
  for (int call = 0; call < 2; ++call) {
    REQUIRE(ValidateJob(&job, 3).ok());
    CHECK_FALSE(job.sync().has_replicas_to_aggregate());
    CHECK_FALSE(job.sync().has_init_tokens());
    CHECK(job.batch_per_tower() == 4);
  }
}

TEST_CASE("A batch that cannot be split evenly is refused with one that can") {
  JobDef job = Synchronous("");
  const absl::Status status = ValidateJob(&job, 5);
  CHECK_THAT(std::string(status.message()),
             Contains("global_batch: expected a multiple of 5 (5 workers of 1 tower), got 12. "
                      "Remedy: use 15"));
  CHECK_FALSE(ValidateJob(&job, 0).ok());
}

TEST_CASE("Per replica, no step may need more replicas than there are") {
  JobDef job = Synchronous("replicas_to_aggregate: 4");
  CHECK(ValidateJob(&job, 4).ok());
  const absl::Status status = ValidateJob(&job, 3);
  CHECK(ExitCodeFor(status) == ExitCode::kBadConfiguration);
  CHECK_THAT(
      std::string(status.message()),
      Contains("sync.replicas_to_aggregate: expected at most 3, the number of workers, got 4"));
}

TEST_CASE("With a token queue TensorFlow's rule holds") {
  // A, total, tokens given, tokens in the end (0: refused). A - total <= tokens; default A.
  struct Case {
    int needed, workers, given, expected;
  };
  for (const Case& c : {Case{4, 3, -1, 4}, Case{4, 3, 1, 1}, Case{4, 3, 0, -9}, Case{6, 3, 2, -9},
                        Case{6, 3, 3, 3}, Case{2, 3, 0, 0}, Case{2, 3, -1, 2}, Case{3, 3, 0, 0}}) {
    CAPTURE(c.needed, c.workers, c.given);
    JobDef job =
        Synchronous("token_policy: FIFO replicas_to_aggregate: " + std::to_string(c.needed) +
                    " init_tokens: " + std::to_string(c.given));
    const absl::Status status = ValidateJob(&job, c.workers);
    if (c.expected < 0) {
      CHECK_THAT(std::string(status.message()), Contains("sync.init_tokens: expected at least"));
    } else {
      REQUIRE(status.ok());
      CHECK(job.sync().init_tokens() == c.expected);
    }
  }
  JobDef defaults = Synchronous("token_policy: FIFO");
  REQUIRE(ValidateJob(&defaults, 2).ok());
  CHECK(defaults.sync().init_tokens() == 2);
}

TEST_CASE("What replicated training cannot do is refused with the field") {
  const std::string strategy = "strategy { replicated {} } ";
  CHECK_THAT(With(strategy + "sync { token_policy: FIFO }"), Contains("sync.token_policy: "));
  CHECK_THAT(With(strategy + "sync { asynchronous {} }"), Contains("sync.asynchronous: "));
  CHECK_THAT(With(strategy + "transport { wire_type: BFLOAT16 }"),
             Contains("transport.wire_type: "));
  CHECK_THAT(With(strategy + "batch_norm_updates: MEAN"), Contains("batch_norm_updates: "));
  CHECK_THAT(With("strategy { replicated { mode: CPU cross_tower_ops { all_reduce {} } } }"),
             Contains("strategy.replicated.mode: cross_tower_ops stands in its place"));
  CHECK_THAT(With("strategy { replicated { cross_tower_ops {} } }"),
             Contains("strategy.replicated.cross_tower_ops: it names no op"));
  CHECK_THAT(
      With("towers: 4 strategy { replicated { mode: HIERARCHICAL } }"),
      Contains("strategy.replicated.mode: HIERARCHICAL: expected 8 towers, got 4. Remedy: "));
}

TEST_CASE("A wrong all_reduce_spec, or a number of an op, is refused with its field") {
  const auto ops = [](const std::string& text) {
    return With("strategy { replicated { cross_tower_ops { " + text + " } } }");
  };
  const std::string path = "strategy.replicated.cross_tower_ops.";
  CHECK_THAT(ops("multi_worker_all_reduce { all_reduce_spec: 'pscpu:2k' }"),
             Contains(path + "multi_worker_all_reduce: all_reduce_spec \"pscpu:2k\", character 9: "
                             "not well formed") &&
                 Contains("Remedy: "));
  CHECK_THAT(
      ops("multi_worker_all_reduce { packing { num_packs: -1 } }"),
      Contains(path + "multi_worker_all_reduce.packing.num_packs: expected a number from 0"));
  CHECK_THAT(ops("all_reduce { packing { num_packs: 65537 } }"),
             Contains(path + "all_reduce.packing.num_packs: expected a number from 0 to 65536"));
  CHECK_THAT(ops("reduction_to_one_device { reduce_to_device: -1 }"),
             Contains(path + "reduction_to_one_device.reduce_to_device: expected a number"));
  CHECK_THAT(ops("collective_all_reduce { all_reduce_merge_scope: -1 }"),
             Contains(path + "collective_all_reduce.all_reduce_merge_scope: expected a number"));
}

TEST_CASE("What depends on the number of workers is refused before anything starts") {
  const auto refused = [](const std::string& fields) {
    auto loaded =
        Load(std::string(kModelPath) + kData + kOptimizer + "batch_per_tower: 4 " + fields);
    INFO(loaded.status());
    REQUIRE(loaded.ok());
    return std::string(ValidateJob(&loaded->job, 3).message());
  };
  CHECK_THAT(refused("max_steps: 1000000000000000000"),
             Contains("max_steps: 1000000000000000000 steps of 12 examples are more than 2^63") &&
                 Contains("Remedy: "));
  const auto root = [](int device) {
    return absl::StrCat(
        "max_steps: 1 towers: 2 strategy { replicated { cross_tower_ops { "
        "reduction_to_one_device { reduce_to_device: ",
        device, " } } } }");
  };
  CHECK(refused(root(5)) == "");
  CHECK_THAT(
      refused(root(6)),
      Contains("reduction_to_one_device.reduce_to_device: expected 0 to 5, one of all towers, "
               "got 6. Remedy: "));
}

TEST_CASE("What reduces the towers of one worker is refused for several") {
  const auto with_workers = [](const std::string& fields, int64_t workers) {
    auto loaded = Load(std::string(kModelPath) + kData + kOptimizer + kStop +
                       "batch_per_tower: 4 towers: 8 strategy { replicated { " + fields + " } }");
    REQUIRE(loaded.ok());
    return ValidateJob(&loaded->job, workers);
  };
  for (const char* const mode : {"CPU", "GPU", "HIERARCHICAL"}) {
    CAPTURE(mode);
    const std::string fields = std::string("mode: ") + mode;
    CHECK_THAT(std::string(with_workers(fields, 2).message()),
               Contains(std::string("strategy.replicated.mode: ") + mode +
                        " reduces the towers of one worker, and there are 2. Remedy: "));
    CHECK(with_workers(fields, 1).ok());
  }
  const std::string op = "cross_tower_ops { all_reduce { all_reduce_alg: 'hierarchical_copy' } }";
  CHECK_THAT(std::string(with_workers(op, 3).message()),
             Contains("strategy.replicated.cross_tower_ops.all_reduce: it reduces the towers"));
  CHECK(with_workers(op, 1).ok());
  CHECK(with_workers("mode: COLLECTIVE", 3).ok());
}

TEST_CASE("Replicated training has no backup workers") {
  auto loaded = Load(std::string(kModelPath) + kData + kBatch + kOptimizer + kStop +
                     "strategy { replicated {} } sync { replicas_to_aggregate: 2 }");
  REQUIRE(loaded.ok());
  JobDef job = loaded->job;
  CHECK(ValidateJob(&job, 2).ok());
  job = loaded->job;
  CHECK_THAT(
      std::string(ValidateJob(&job, 3).message()),
      Contains("sync.replicas_to_aggregate: ") && Contains("expected 3") && Contains("got 2"));
}

}  // namespace
}  // namespace lockstep
