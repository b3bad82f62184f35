// A job of one ps and two workers, both of which count, for talking to a ps.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "tests/conformance/ps_under_test.h"
#include "tests/support/ps_data.h"

namespace lockstep {

inline constexpr uint64_t kJob = 99;
inline constexpr float kLearningRate = 0.5f;

inline Command ChiefCommand(uint64_t term = 1) {
  Command command;
  command.set_job(kJob);
  command.set_term(term);
  return command;
}

inline WorkerIdentity Worker(uint32_t index) {
  WorkerIdentity worker;
  worker.set_job(kJob);
  worker.set_epoch(1);
  worker.set_worker(index);
  worker.set_incarnation(100 + index);
  return worker;
}

inline SetViewRequest TwoWorkers(uint64_t term = 1) {
  SetViewRequest view;
  *view.mutable_command() = ChiefCommand(term);
  view.set_epoch(1);
  for (uint32_t index : {0, 1}) {
    Member* member = view.add_members();
    member->set_worker(index);
    member->set_incarnation(100 + index);
  }
  view.set_cluster(kTestCluster);
  return view;
}

// Variable i: float32, trainable, sizes[i] elements, all 1 at first.
inline CreateVariablesRequest Variables(const std::vector<int64_t>& sizes) {
  CreateVariablesRequest request;
  *request.mutable_command() = ChiefCommand();
  request.mutable_placement()->set_shards(1);
  for (size_t i = 0; i < sizes.size(); ++i) {
    VariableSpec* spec = request.mutable_placement()->add_variables();
    spec->set_id(static_cast<uint32_t>(i));
    spec->set_name("v" + std::to_string(i));
    spec->set_dtype(FLOAT32);
    spec->add_dims(sizes[i]);
    spec->set_trainable(true);
    spec->mutable_initializer()->mutable_constant()->set_value(1);
  }
  request.mutable_optimizer()->mutable_sgd();
  request.set_total_num_replicas(2);
  request.set_replicas_to_aggregate(2);
  request.set_init_tokens(-1);
  request.set_shared_memory(true);
  return request;
}

inline GrantRequest Granted(int64_t step) {
  GrantRequest grant;
  *grant.mutable_command() = ChiefCommand();
  grant.set_step(step);
  grant.set_required(2);
  grant.set_learning_rate(kLearningRate);
  grant.set_commit(true);
  return grant;
}

// Elements [begin, end) of a gradient of `total` elements.
inline PushRequest PushOf(uint32_t worker, int64_t step, uint32_t variable, int64_t total,
                          int64_t begin, int64_t end) {
  PushRequest push;
  *push.mutable_worker() = Worker(worker);
  push.set_push_seq(static_cast<uint64_t>(step) + 1);
  push.set_local_step(step);
  PushPiece* piece = push.add_pieces();
  piece->set_variable(variable);
  piece->set_dtype(FLOAT32);
  piece->add_dims(total);
  piece->set_offset(static_cast<uint64_t>(begin) * sizeof(float));
  piece->set_size(static_cast<uint64_t>(end - begin) * sizeof(float));
  return push;
}

inline std::span<const std::byte> BytesOf(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

inline PullRequest PullOf(uint32_t worker, int64_t version, uint32_t variable) {
  PullRequest pull;
  *pull.mutable_worker() = Worker(worker);
  pull.set_version(version);
  pull.add_pieces()->set_variable(variable);
  return pull;
}

inline PullRequest PullRowsOf(uint32_t worker, int64_t version, uint32_t variable,
                              const std::vector<int64_t>& rows) {
  PullRequest pull = PullOf(worker, version, variable);
  pull.mutable_pieces(0)->mutable_rows()->Add(rows.begin(), rows.end());
  return pull;
}

inline DequeueTokenRequest DequeueOf(uint32_t worker, uint64_t seq) {
  DequeueTokenRequest dequeue;
  *dequeue.mutable_worker() = Worker(worker);
  dequeue.set_dequeue_seq(seq);
  return dequeue;
}

inline FinishRequest JobIsOver() {
  FinishRequest finish;
  *finish.mutable_command() = ChiefCommand();
  return finish;
}

}  // namespace lockstep
