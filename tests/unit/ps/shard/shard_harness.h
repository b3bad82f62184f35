// Common code of the shard's tests: small placements and messages with payloads of their own.
// Harness is a shard with a chief's and a worker's calls in short form.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/callback.h"
#include "ps/shard/shard.h"
#include "tests/support/payload_of.h"

namespace lockstep::ps::test {

inline constexpr uint64_t kJob = 7;

inline Command CommandOf(uint64_t job, uint64_t term) {
  Command command;
  command.set_job(job);
  command.set_term(term);
  return command;
}

inline const Command kCommand = CommandOf(kJob, 1);

struct SpecText {
  std::string name;
  std::vector<int64_t> dims;
  uint32_t shard = 0;
  bool trainable = true;
  float initial = 0;
  bool sparse = false;
  bool frozen = false;
};

inline Placement PlacementOf(const std::vector<SpecText>& texts, uint32_t shards = 1) {
  Placement placement;
  placement.set_shards(shards);
  for (const SpecText& text : texts) {
    VariableSpec* spec = placement.add_variables();
    spec->set_id(static_cast<uint32_t>(placement.variables_size() - 1));
    spec->set_name(text.name);
    spec->set_dtype(FLOAT32);
    for (const int64_t dim : text.dims) spec->add_dims(dim);
    spec->set_shard(text.shard);
    spec->set_trainable(text.trainable);
    spec->set_sparse(text.sparse);
    spec->set_frozen(text.frozen);
    spec->mutable_initializer()->mutable_constant()->set_value(text.initial);
  }
  return placement;
}

inline CreateVariablesRequest PlanOf(Placement placement, uint32_t total, uint32_t aggregate,
                                     TokenPolicy policy = PER_REPLICA) {
  CreateVariablesRequest plan;
  *plan.mutable_command() = kCommand;
  *plan.mutable_placement() = std::move(placement);
  plan.mutable_optimizer()->mutable_sgd();
  plan.set_token_policy(policy);
  plan.set_total_num_replicas(total);
  plan.set_replicas_to_aggregate(aggregate);
  plan.set_init_tokens(-1);
  return plan;
}

inline CreateVariablesRequest OneVariable(uint32_t total = 1, uint32_t aggregate = 1,
                                          TokenPolicy policy = PER_REPLICA) {
  return PlanOf(PlacementOf({{"w", {1}}}), total, aggregate, policy);
}

inline Incarnation FirstIncarnation(uint32_t worker) { return Incarnation(100 + worker); }

inline WorkerIdentity IdentityOf(uint32_t worker) {
  return {kJob, Epoch(1), WorkerIndex(worker), FirstIncarnation(worker)};
}

inline View ViewOf(uint32_t workers, uint32_t shard = 0) {
  View view{kCommand, Epoch(1), {}, ShardIndex(shard)};
  for (uint32_t worker = 0; worker < workers; ++worker) {
    view.members.push_back({WorkerIndex(worker), FirstIncarnation(worker)});
  }
  return view;
}

// A push that owns its payload, cut into spans of `cut` bytes.
class Message {
 public:
  Message(const WorkerIdentity& worker, uint64_t push_seq, int64_t local_step) {
    arguments_.worker = worker;
    arguments_.push_seq = PushSeq(push_seq);
    arguments_.local_step = GlobalStep(local_step);
  }

  Message& Whole(uint32_t variable, const Shape& shape, const std::vector<float>& values) {
    return Chunk(variable, shape, values, 0, values.size() * sizeof(float));
  }
  Message& Chunk(uint32_t variable, const Shape& shape, const std::vector<float>& values,
                 uint64_t offset, uint64_t size) {
    arguments_.pieces.push_back({VariableId(variable), DType::kFloat32, shape, offset, size});
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    payload_.insert(payload_.end(), bytes + offset, bytes + offset + size);
    return *this;
  }
  // Bytes [offset, offset + size) of a sparse gradient, by default all.
  Message& Rows(uint32_t variable, const Shape& shape, const std::vector<int64_t>& indices,
                const std::vector<float>& values, uint64_t offset = 0,
                std::optional<uint64_t> size = {}) {
    std::vector<std::byte> bytes(indices.size() * 8 + values.size() * 4);
    if (!indices.empty()) std::memcpy(bytes.data(), indices.data(), indices.size() * 8);
    if (!values.empty()) {
      std::memcpy(bytes.data() + indices.size() * 8, values.data(), values.size() * 4);
    }
    arguments_.pieces.push_back({VariableId(variable), DType::kFloat32, shape, offset,
                                 size.value_or(bytes.size() - offset),
                                 static_cast<int64_t>(indices.size())});
    const auto begin = bytes.begin() + offset;
    payload_.insert(payload_.end(), begin, begin + arguments_.pieces.back().size);
    return *this;
  }
  Message& Ask(uint32_t variable) {
    arguments_.ask = true;
    arguments_.pieces.push_back({.variable = VariableId(variable)});
    return *this;
  }

  PushArguments& arguments() { return arguments_; }
  std::vector<std::byte>& payload() { return payload_; }

  // The order with its payload; valid while the message is.
  const PushArguments& Ready(size_t cut = 7) {
    ReceivedTensors::Segments segments;
    for (size_t at = 0; at < payload_.size(); at += cut) {
      segments.emplace_back(payload_.data() + at, std::min(cut, payload_.size() - at));
    }
    arguments_.tensors = ReceivedTensors(std::move(segments));
    return arguments_;
  }
  // The order with a payload that the shard may keep beyond the message.
  const PushArguments& Kept(size_t cut = 50'021) {
    arguments_.tensors = ReceivedTensors(lockstep::test::PayloadOf(payload_, cut));
    return arguments_;
  }

 private:
  PushArguments arguments_;
  std::vector<std::byte> payload_;
};

// Tensors in a worker's memory, with these values; `segments` has row indices, too.
inline ReceivedTensors Borrowed(ReceivedTensors::Segments segments,
                                const ReceivedTensors::Segments& values,
                                std::shared_ptr<const void> owner) {
  std::vector<ReceivedTensors::Reference> references;
  for (const ReceivedTensors::Bytes bytes : values) references.push_back({bytes, bytes.size()});
  return ReceivedTensors(std::make_shared<const ReceivedTensors::Segments>(std::move(segments)),
                         std::move(references), std::move(owner));
}
inline ReceivedTensors Borrowed(const ReceivedTensors::Segments& values,
                                std::shared_ptr<const void> owner) {
  return Borrowed(values, values, std::move(owner));
}

// The answer of a call that may be parked.
template <typename T>
class Reply {
 public:
  Reply() : result_(std::make_shared<std::optional<absl::StatusOr<T>>>()) {}
  Callback<T> done() const {
    return [result = result_, calls = calls_](absl::StatusOr<T> answer) {
      ++*calls;
      result->emplace(std::move(answer));
    };
  }
  bool IsParked() const { return *calls_ == 0; }
  int calls() const { return *calls_; }
  absl::Status status() const { return (*result_)->status(); }
  const T& operator*() const { return ***result_; }
  const T* operator->() const { return &***result_; }

 private:
  std::shared_ptr<std::optional<absl::StatusOr<T>>> result_;
  std::shared_ptr<int> calls_ = std::make_shared<int>(0);
};

inline std::vector<float> ValuesOf(const PulledPiece& piece) {
  std::vector<float> values(piece.bytes.size() / sizeof(float));
  std::memcpy(values.data(), piece.bytes.data(), piece.bytes.size());
  return values;
}

class Harness {
 public:
  explicit Harness(const ShardOptions& options = {}) : shard(options) {}
  Harness(const CreateVariablesRequest& plan, const ShardOptions& options = {}) : shard(options) {
    if (!shard.SetView(ViewOf(plan.total_num_replicas())).ok()) std::abort();
    if (!shard.CreateVariables(plan).ok()) std::abort();
  }

  Reply<ClosedStep> Grant(int64_t step, uint32_t required, float learning_rate = 1.0f) {
    return Grant({.command = kCommand,
                  .step = GlobalStep(step),
                  .required = required,
                  .learning_rate = learning_rate});
  }
  Reply<ClosedStep> Grant(const GrantArguments& arguments) {
    Reply<ClosedStep> reply;
    shard.Grant(arguments, reply.done());
    return reply;
  }
  Reply<PullResult> Pull(uint32_t worker, int64_t version, std::vector<PullPiece> pieces) {
    Reply<PullResult> reply;
    shard.Pull({IdentityOf(worker), GlobalStep(version), std::move(pieces)}, reply.done());
    return reply;
  }
  // The values of one variable at a version that is readable now.
  std::vector<float> Read(int64_t version, uint32_t variable, uint32_t worker = 0) {
    const auto reply = Pull(worker, version, {{VariableId(variable)}});
    if (reply.IsParked() || !reply.status().ok() || reply->version != GlobalStep(version)) {
      return {};
    }
    return ValuesOf(reply->pieces[0]);
  }
  Reply<Token> Dequeue(uint32_t worker, uint64_t dequeue_seq) {
    Reply<Token> reply;
    shard.DequeueToken({IdentityOf(worker), DequeueSeq(dequeue_seq)}, reply.done());
    return reply;
  }
  // Pushes a whole gradient of one variable and returns its status.
  PushStatus Push(uint32_t worker, uint64_t push_seq, int64_t stamp, uint32_t variable,
                  const std::vector<float>& gradient) {
    const auto result =
        shard.Push(Message(IdentityOf(worker), push_seq, stamp)
                       .Whole(variable, Shape({static_cast<int64_t>(gradient.size())}), gradient)
                       .Ready());
    if (!result.ok()) std::abort();
    return result->statuses[0];
  }

  Shard shard;
};

}  // namespace lockstep::ps::test
