#include "chief/plan/messages.h"

#include <google/protobuf/text_format.h>

#include "common/base/version.h"

namespace lockstep::chief {
namespace {

std::string ToText(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

}  // namespace

CreateVariablesRequest ToCreateVariables(const JobPlan& plan) {
  const SyncDef& sync = plan.job.sync();
  CreateVariablesRequest request;
  *request.mutable_placement() = plan.placement;
  *request.mutable_optimizer() = plan.job.optimizer();
  *request.mutable_losses() = plan.job.losses();
  *request.mutable_sync() = sync;
  *request.mutable_transport() = plan.job.transport();
  request.set_seed(plan.job.seed());
  request.set_token_policy(sync.token_policy());
  request.set_total_num_replicas(static_cast<uint32_t>(plan.cluster.workers.size()));
  request.set_replicas_to_aggregate(plan.required());
  request.set_init_tokens(sync.has_init_tokens() ? sync.init_tokens() : -1);
  request.set_restore_from(plan.restore_from);
  request.set_start_step(plan.start.value());
  request.set_non_finite(sync.non_finite());
  request.set_shared_memory(plan.job.transport().shared_memory() != TransportDef::OFF);
  request.set_every_replica_counts(plan.every_replica_counts());
  request.set_job_text(ToText(plan.job));
  request.set_model_text(ToText(plan.model));
  if (!plan.asynchronous()) return request;
  request.set_asynchronous(true);
  request.set_end_step(plan.max_steps.value());
  if (sync.asynchronous().has_max_staleness()) {
    request.set_max_staleness(sync.asynchronous().max_staleness());
  }
  return request;
}

RegisterTaskReply ToRegistration(const JobPlan& plan) {
  RegisterTaskReply reply;
  reply.set_ready(true);
  *reply.mutable_job() = plan.job;
  *reply.mutable_model() = plan.model;
  *reply.mutable_placement() = plan.placement;
  reply.set_total_num_replicas(static_cast<uint32_t>(plan.cluster.workers.size()));
  reply.set_replicas_to_aggregate(plan.required());
  reply.set_max_steps(plan.max_steps.value());
  for (const int64_t examples : plan.examples.train_files) reply.add_training_examples(examples);
  reply.set_test_examples(plan.examples.test);
  return reply;
}

Manifest ToManifest(const JobPlan& plan, Epoch epoch, const CheckpointOrigin& origin) {
  Manifest manifest;
  manifest.epoch = epoch.value();
  manifest.origin = origin;
  manifest.seed = plan.job.seed();
  manifest.lockstep_version = kVersion;
  manifest.optimizer = plan.optimizer;
  manifest.model = ToText(plan.model);
  manifest.job = ToText(plan.job);
  manifest.cluster = plan.cluster.Canonical();
  return manifest;
}

}  // namespace lockstep::chief
