#include "worker/service/check_registration.h"

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/limits.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

RegisterTaskReply Reply() {
  RegisterTaskReply reply;
  reply.set_total_num_replicas(2);
  reply.set_replicas_to_aggregate(2);
  reply.set_max_steps(100);
  reply.set_start_step(7);
  reply.set_lease_ms(5000);
  reply.mutable_placement()->set_shards(3);
  reply.mutable_job()->set_towers(2);
  reply.mutable_job()->set_batch_per_tower(32);
  reply.mutable_job()->mutable_evaluation()->set_batch(100);
  return reply;
}

template <typename Change>
std::string Refusal(Change change) {
  RegisterTaskReply reply = Reply();
  change(&reply);
  const absl::Status status = CheckRegistration(reply, 1, 3);
  CHECK(ExitCodeFor(status) == ExitCode::kBadConfiguration);
  return std::string(status.message());
}

TEST_CASE("what a chief of this version tells is taken") {
  CHECK(CheckRegistration(Reply(), 1, 3).ok());
  RegisterTaskReply reply = Reply();
  reply.set_start_step(100);
  reply.mutable_job()->set_towers(0);
  CHECK(CheckRegistration(reply, 1, 3).ok());
}

TEST_CASE("a number out of its range is refused with its field, the range and a remedy") {
  CHECK(Refusal([](RegisterTaskReply* r) { r->set_total_num_replicas(0); }) ==
        "the chief's reply to RegisterTask: total_num_replicas: expected 2 to 1048576, got 0. "
        "Remedy: run the same version everywhere");
  using Changes =
      std::vector<std::pair<std::string, std::function<void(RegisterTaskReply*, int64_t)>>>;
  const Changes fields = {
      {"max_steps", [](RegisterTaskReply* r, int64_t n) { r->set_max_steps(n); }},
      {"start_step", [](RegisterTaskReply* r, int64_t n) { r->set_start_step(n); }},
      {"job.towers", [](RegisterTaskReply* r, int64_t n) { r->mutable_job()->set_towers(n); }},
      {"job.batch_per_tower",
       [](RegisterTaskReply* r, int64_t n) { r->mutable_job()->set_batch_per_tower(n); }},
      {"job.evaluation.batch",
       [](RegisterTaskReply* r, int64_t n) {
         r->mutable_job()->mutable_evaluation()->set_batch(n);
       }},
      {"job.data.prefetch",
       [](RegisterTaskReply* r, int64_t n) { r->mutable_job()->mutable_data()->set_prefetch(n); }}};
  for (const auto& [field, set] : fields) {
    for (const int64_t number : {int64_t{-1}, -kMost - 1, kMost}) {
      const std::string said = Refusal([&, set = set](RegisterTaskReply* r) { set(r, number); });
      CHECK_THAT(said, Catch::Contains("RegisterTask: " + field + ": ") &&
                           Catch::Contains(absl::StrCat(number)));
    }
  }
  CHECK_THAT(Refusal([](RegisterTaskReply* r) { r->mutable_placement()->set_shards(4294967295); }),
             Catch::Contains("placement.shards: expected 3 to 3, got 4294967295"));
  CHECK_THAT(Refusal([](RegisterTaskReply* r) { r->set_replicas_to_aggregate(0); }),
             Catch::Contains("replicas_to_aggregate: expected 1"));
  CHECK_THAT(Refusal([](RegisterTaskReply* r) { r->set_total_num_replicas(1); }),
             Catch::Contains("total_num_replicas: expected 2"));
}

TEST_CASE("each number of a job may be as large as its limit, and no larger") {
  struct Limit {
    std::string field;
    int64_t most;
    std::function<void(RegisterTaskReply*, int64_t)> set;
  };
  const std::vector<Limit> all = {
      {"total_num_replicas", limits::kMaxReplicas,
       [](RegisterTaskReply* r, int64_t n) {
         r->set_total_num_replicas(static_cast<uint32_t>(n));
       }},
      {"replicas_to_aggregate", limits::kMaxReplicas,
       [](RegisterTaskReply* r, int64_t n) {
         r->set_replicas_to_aggregate(static_cast<uint32_t>(n));
       }},
      {"job.towers", limits::kMaxTowers,
       [](RegisterTaskReply* r, int64_t n) { r->mutable_job()->set_towers(n); }},
      {"job.batch_per_tower", limits::kMaxBatch,
       [](RegisterTaskReply* r, int64_t n) { r->mutable_job()->set_batch_per_tower(n); }},
      {"job.evaluation.batch", limits::kMaxBatch,
       [](RegisterTaskReply* r, int64_t n) {
         r->mutable_job()->mutable_evaluation()->set_batch(n);
       }},
      {"job.data.prefetch", limits::kMaxPrefetch,
       [](RegisterTaskReply* r, int64_t n) { r->mutable_job()->mutable_data()->set_prefetch(n); }}};
  for (const auto& [field, most, set] : all) {
    INFO(field);
    RegisterTaskReply reply = Reply();
    set(&reply, most);
    CHECK(CheckRegistration(reply, 1, 3).ok());
    CHECK_THAT(Refusal([&, set = set, most = most](RegisterTaskReply* r) { set(r, most + 1); }),
               Catch::Contains(absl::StrCat("RegisterTask: ", field, ": expected ")) &&
                   Catch::Contains(absl::StrCat(" to ", most, ", got ", most + 1)));
  }
}

TEST_CASE("examples that cannot be numbered are refused") {
  CHECK_THAT(Refusal([](RegisterTaskReply* r) {
               r->set_max_steps(int64_t{1} << 48);
               r->mutable_job()->set_batch_per_tower(1 << 20);
             }),
             Catch::Contains("are more than 2^63 examples"));
}

TEST_CASE("places of shards are those of all ps, with addresses that can be called") {
  RegisterTaskReply reply = Reply();
  for (int shard = 0; shard < 3; ++shard) reply.add_shards()->set_address("node:2222");
  reply.mutable_shards(1)->set_other_address("node:2223");
  CHECK(CheckRegistration(reply, 1, 3).ok());
  CHECK_THAT(Refusal([&](RegisterTaskReply* r) {
               *r = reply;
               r->mutable_shards(2)->set_other_address("node");
             }),
             Catch::Contains("shards.other_address: expected \"host:port\""));
  CHECK_THAT(Refusal([](RegisterTaskReply* r) { r->add_shards()->set_address("node:1"); }),
             Catch::Contains("shards: expected 3 to 3, got 1"));
}

TEST_CASE("an enum value that this version does not know is refused with its field") {
  CHECK_THAT(Refusal([](RegisterTaskReply* r) {
               r->mutable_job()->mutable_sync()->set_token_policy(static_cast<TokenPolicy>(7));
             }),
             Catch::Contains("job.sync.token_policy: 7 is none of PER_REPLICA, FIFO"));
  CHECK_THAT(Refusal([](RegisterTaskReply* r) {
               r->mutable_placement()->add_variables();
               r->mutable_placement()->add_variables()->set_dtype(static_cast<DataType>(99));
             }),
             Catch::Contains("placement.variables[1].dtype: 99 is none of DATA_TYPE_UNSPECIFIED"));
}

}  // namespace
}  // namespace lockstep::worker
