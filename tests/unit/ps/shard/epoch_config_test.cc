#include "ps/shard/epoch_config.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::OneVariable;

// As a chief sends it: the job's own messages, and the older fields for a ps that knows only those.
CreateVariablesRequest FromChief(const SyncDef& sync, TransportDef::SharedMemory memory) {
  CreateVariablesRequest request = OneVariable(3, 2);
  *request.mutable_sync() = sync;
  request.mutable_transport()->set_shared_memory(memory);
  return request;
}

TEST_CASE("A config reads the job's own messages") {
  SyncDef sync;
  sync.set_replicas_to_aggregate(3);
  sync.set_token_policy(FIFO);
  sync.set_init_tokens(7);
  sync.set_non_finite(REFUSE_NON_FINITE);
  const EpochConfig config(FromChief(sync, TransportDef::MAP));
  REQUIRE(config.Check().ok());
  CHECK(config.replicas_to_aggregate() == 3);
  CHECK(config.is_fifo());
  CHECK(config.sync().init_tokens() == 7);
  CHECK(config.refuses_non_finite());
  CHECK(config.shares_values());
  CHECK(config.count_rule(std::nullopt).kind == CountRule::kEveryGradient);
  CHECK_FALSE(EpochConfig(FromChief(sync, TransportDef::OFF)).shares_values());
}

TEST_CASE("Where both are given the job's messages count, not the older fields") {
  CreateVariablesRequest request = FromChief(SyncDef(), TransportDef::OFF);
  request.set_token_policy(FIFO);
  request.set_non_finite(REFUSE_NON_FINITE);
  request.set_asynchronous(true);
  request.set_shared_memory(true);
  const EpochConfig config(request);
  CHECK_FALSE(config.is_fifo());
  CHECK_FALSE(config.refuses_non_finite());
  CHECK_FALSE(config.is_asynchronous());
  CHECK_FALSE(config.shares_values());
  // What the job leaves out: all replicas.
  CHECK(config.replicas_to_aggregate() == 3);
  CHECK(config.sync().init_tokens() == -1);
}

TEST_CASE("Where the job's messages are absent the older fields stand for them") {
  CreateVariablesRequest request = OneVariable(3, 2, FIFO);
  request.set_init_tokens(5);
  request.set_non_finite(REFUSE_NON_FINITE);
  request.set_shared_memory(true);
  const EpochConfig fifo(request);
  CHECK(fifo.is_fifo());
  CHECK(fifo.replicas_to_aggregate() == 2);
  CHECK(fifo.sync().init_tokens() == 5);
  CHECK(fifo.refuses_non_finite());
  CHECK(fifo.shares_values());

  request = OneVariable(3, 1);
  request.set_asynchronous(true);
  request.set_max_staleness(4);
  const EpochConfig asynchronous(request);
  CHECK(asynchronous.is_asynchronous());
  CHECK(asynchronous.max_staleness() == 4);
  CHECK(asynchronous.count_rule(std::nullopt).kind == CountRule::kOneByOne);
  CHECK_FALSE(asynchronous.shares_values());
}

TEST_CASE("The fingerprint tells what makes the variables from what may change") {
  SyncDef sync;
  sync.set_replicas_to_aggregate(2);
  const CreateVariablesRequest request = FromChief(sync, TransportDef::COPY);
  const std::string fingerprint = EpochConfig(request).Fingerprint();

  CreateVariablesRequest same = request;
  same.mutable_optimizer()->mutable_clipping()->set_norm(1);
  same.mutable_optimizer()->mutable_learning_rate()->set_base(0.5f);
  same.mutable_sync()->set_quorum_policy(ABORT);
  same.mutable_transport()->set_shared_memory(TransportDef::OFF);
  same.mutable_transport()->set_wire_type(BFLOAT16);
  same.set_restore_from("/checkpoints/ckpt-5");
  same.set_start_step(5);
  same.set_job_text("another");
  CHECK(EpochConfig(same).Fingerprint() == fingerprint);
  // The same job from a chief that sends only the older fields.
  same.clear_sync();
  same.clear_transport();
  same.set_replicas_to_aggregate(2);
  CHECK(EpochConfig(same).Fingerprint() == fingerprint);

  const auto differs = [&](auto change) {
    CreateVariablesRequest other = request;
    change(&other);
    return EpochConfig(other).Fingerprint() != fingerprint;
  };
  using Request = CreateVariablesRequest*;
  CHECK(differs([](Request other) { other->mutable_placement()->set_shards(2); }));
  CHECK(differs([](Request other) { other->mutable_optimizer()->mutable_adam(); }));
  CHECK(differs([](Request other) { other->mutable_sync()->set_replicas_to_aggregate(1); }));
  CHECK(differs([](Request other) { other->mutable_sync()->set_non_finite(REFUSE_NON_FINITE); }));
  CHECK(differs([](Request other) { other->mutable_sync()->mutable_asynchronous(); }));
  CHECK(differs([](Request other) { other->set_seed(1); }));
  CHECK(differs([](Request other) { other->set_total_num_replicas(4); }));
  CHECK(differs([](Request other) { other->set_every_replica_counts(true); }));
}

TEST_CASE("The learning rate of an asynchronous job is part of its fingerprint") {
  SyncDef sync;
  sync.mutable_asynchronous();
  CreateVariablesRequest request = FromChief(sync, TransportDef::COPY);
  const std::string fingerprint = EpochConfig(request).Fingerprint();
  request.mutable_sync()->mutable_asynchronous()->set_scale_gradient(false);
  CHECK(EpochConfig(request).Fingerprint() == fingerprint);
  request.mutable_optimizer()->mutable_learning_rate()->set_base(0.5f);
  CHECK(EpochConfig(request).Fingerprint() != fingerprint);
}

TEST_CASE("A number of replicas that cannot be is refused") {
  for (const int64_t needed : {int64_t{-1}, int64_t{0}, int64_t{4}, int64_t{1} << 40}) {
    SyncDef sync;
    sync.set_replicas_to_aggregate(needed);
    const absl::Status status = EpochConfig(FromChief(sync, TransportDef::COPY)).Check();
    CAPTURE(needed, status.ToString());
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(), absl::StrCat(needed)));
  }
}

}  // namespace
}  // namespace lockstep::ps
