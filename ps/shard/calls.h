// Arguments and results of the calls of a shard, as plain structs: ps/service translates them from
// and to protobuf, the simulator makes them itself. Field meanings: proto/ps.proto.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/primary_of_copy.h"
#include "common/checkpoint/checkpoint.h"
#include "common/replicas/replica_view.h"
#include "common/tensor/seq_lock.h"
#include "common/tensor/tensor.h"
#include "common/transport/received_tensors.h"
#include "proto/ps.pb.h"
#include "ps/accumulator/push_status.h"

namespace lockstep::ps {

struct SharedTable;
class TensorSnapshot;

struct WorkerIdentity {
  uint64_t job = 0;
  Epoch epoch;
  WorkerIndex worker;
  Incarnation incarnation;
  uint32_t tower = 0;
};

struct Member {
  WorkerIndex worker;
  Incarnation incarnation;
};

// The only member of a copy: its primary.
inline constexpr Member kPrimaryOfCopy{kPrimaryWorker, kPrimaryIncarnation};

struct View {
  Command command;
  Epoch epoch;
  std::vector<Member> members;
  ShardIndex shard;
  uint64_t number = 0;         // of the views of its term
  ReplicaViews replica_views;  // none: those that the shard has stay
  bool is_copy = false;
  std::string copy_address;  // of a primary; empty: it is alone
  bool makes_copy = false;   // one that is alone makes a new copy there, instead of staying alone;
                             // a copy is made anew
  GlobalStep committed;      // of a copy that becomes the primary, at the step shard
  absl::Duration lease;      // of the chief: the silence of the copy that a primary logs; 0: none
};

struct EvaluatedVersion {
  GlobalStep version;
  int64_t examples = 0;
  double accuracy = 0;
  double loss = 0;
};

struct ShardState {
  uint64_t job = 0;
  Term term;
  Epoch epoch;
  bool has_variables = false;
  GlobalStep shard_step;   // first step that this shard has not closed
  GlobalStep global_step;  // step shard: committed steps
  GlobalStep start_step;   // the version that the variables were created with
  std::vector<Member> members;
  std::vector<GlobalStep> kept_versions;
  std::vector<EvaluatedVersion> evaluations;
  // A version that was to be saved is in no checkpoint that is known to exist, and the job is not
  // over (Shard::LookForCheckpoint).
  bool holds_unsaved = false;
  ReplicaViews replica_views;
  bool is_copy = false;
  bool awaits_state = false;    // a copy that its primary has not sent all of its state
  bool has_copy = false;        // a primary that is not alone
  absl::Duration copy_silence;  // CopyTarget::Silence
  bool is_deposed = false;      // a primary that serves nobody: its copy has refused what it sent
};

struct CreatedVariables {
  CreateVariablesReply reply;
  // "<variable>/<slot>" that the checkpoint lacks, and that begin anew. Told by the call that
  // created, not by those that repeat it.
  std::vector<std::string> missing_slots;
  bool has_checksums = false;  // their transport.checksums: a repeated request may say otherwise
};

struct GrantArguments {
  Command command;
  GlobalStep step;
  uint32_t required = 1;
  float learning_rate = 0;
  bool keep_values = false;
  bool keep_slots = false;
  bool commit = false;
  bool last = false;
};

struct SmallStatistic {
  VariableId variable;
  std::vector<float> values;
  uint32_t count = 0;
};

struct ClosedStep {
  GlobalStep step;
  GlobalStep shard_step;
  uint64_t accepted = 0;
  uint64_t stale = 0;
  std::vector<SmallStatistic> statistics;
};

// A gradient that counts.
struct CountedPush {
  WorkerIndex worker;
  Incarnation incarnation;
  PushSeq push_seq;

  friend bool operator==(const CountedPush&, const CountedPush&) = default;
};

// From a primary to its copy: the pieces of a push are means.
struct MeanArguments {
  float learning_rate = 0;  // of the step that they close
  std::vector<CountedPush> mean_of;
  uint64_t stale = 0;
};

struct PushPiece {
  VariableId variable;
  DType dtype = DType::kFloat32;
  Shape shape;  // of the whole tensor
  uint64_t offset = 0;
  uint64_t size = 0;
  int64_t rows = 0;  // slices of a sparse gradient
};

// A range of bytes of a variable's value, or of the slot of this name.
struct StoredPiece {
  VariableId variable;
  std::string slot;
  uint64_t offset = 0;
  uint64_t size = 0;
};

// What a worker has of a version, of variables that the workers keep.
struct StoreArguments {
  WorkerIdentity worker;
  GlobalStep version;
  std::vector<StoredPiece> pieces;
  ReceivedTensors tensors;
};

// From a primary to a copy that was made while the job trains: parts of its state at `step`.
struct StateArguments {
  WorkerIdentity worker;
  GlobalStep step;
  bool begins = false;
  std::vector<float> scalars;  // of a message that begins, as what follows
  uint64_t accepted = 0;
  uint64_t stale = 0;
  std::vector<StoredPiece> pieces;
  bool completes = false;
  ReceivedTensors tensors;
};

// `tensors` has the pieces' bytes in their order. Of borrowed ones the shard keeps what it needs
// instead of copying; the worker leaves them unchanged for as long as proto/ps.proto says.
struct PushArguments {
  WorkerIdentity worker;
  PushSeq push_seq;
  GlobalStep local_step;
  std::vector<PushPiece> pieces;
  bool ask = false;
  std::optional<MeanArguments> mean;
  ReceivedTensors tensors;
};

struct PushResult {
  std::vector<PushStatus> statuses;  // one per piece
  GlobalStep shard_step;
  bool done = false;
};

// Of a shard, since it was started.
struct PushCounts {
  uint64_t accepted = 0;
  uint64_t stale = 0;
  uint64_t duplicates = 0;
  uint64_t rejected = 0;
};

struct PullPiece {
  VariableId variable;
  uint64_t offset = 0;
  uint64_t size = 0;  // 0: to the end
  // Of a sparse variable, in place of offset and size.
  std::vector<int64_t> rows;
};

// Names a pull that may be parked, for Shard::CancelPull. Guarded by the shard's lock.
struct PullTicket {
  bool is_cancelled = false;
  uint64_t pull = 0;  // number of the parked pull; 0: none yet
};

struct PullArguments {
  WorkerIdentity worker;
  GlobalStep version;
  std::vector<PullPiece> pieces;
  bool averages = false;
  std::string slot;                              // empty: values
  bool accepts_references = false;               // the worker sees the values where they are
  DType wire_type = DType::kFloat32;             // of dense float32 variables
  std::shared_ptr<PullTicket> ticket = nullptr;  // null: nobody withdraws it
  // That its caller keeps for as long as it waits, beside what it names.
  uint64_t kept_bytes = 0;
};

// Bytes of a published value; `owner` keeps them alive and unchanged. Of a result by reference
// nobody does: the worker checks the sequence lock after reading.
struct PulledPiece {
  VariableId variable;
  uint64_t offset = 0;
  uint64_t size = 0;                 // bytes that were asked for
  std::span<const std::byte> bytes;  // these; by reference, where rows were asked for, all rows
  std::shared_ptr<const Tensor> owner;
  // Until they are copied out of it: bytes are all its rows.
  std::shared_ptr<const SharedTable> table;
  // The same; there are no bytes, and no owner, before they are copied.
  std::shared_ptr<const TensorSnapshot> snapshot = nullptr;
  bool is_to_copy = false;            // so that the reply keeps no version
  const SeqLock* seq_lock = nullptr;  // by reference
};

struct PullResult {
  GlobalStep version;
  std::vector<PulledPiece> pieces;
  bool by_reference = false;
  // Of a result that is not by reference: counts its bytes as not read, for as long as it exists.
  std::shared_ptr<const void> pin = nullptr;
  std::shared_ptr<const void> copy_pin = nullptr;  // the same, of those that are copied
  std::vector<float> scalars = {};                 // of a pull of a slot
};

struct DequeueArguments {
  WorkerIdentity worker;
  DequeueSeq dequeue_seq;
  std::optional<GlobalStep> token_step;  // of the newest token that the worker says it has
};

struct Token {
  GlobalStep step;
  bool done = false;
  // The workers are to store this version (proto/ps.proto).
  bool store_values = false;
  bool store_slots = false;
  std::optional<ReplicaShare> share;  // of its step, where replica views say so
};

// What a worker wants for its next step, asked for with a gradient.
struct NextStepArguments {
  DequeueSeq dequeue_seq;  // step shard; 0: no token
  std::optional<PullArguments> pull;
};

struct PushPullResult {
  PushResult push;
  std::optional<Token> token;
  std::optional<PullResult> values;
};

struct PendingVariable {
  std::string name;
  uint32_t have = 0;
  uint32_t required = 0;
  std::vector<WorkerIndex> from;
};

// What changes while workers use a shard. Counts are those since it was started.
struct ShardActivity {
  bool has_variables = false;
  GlobalStep shard_step;
  uint64_t pushes = 0;          // PushCounts
  uint64_t held_bytes = 0;      // of gradients
  uint64_t answered_pulls = 0;  // with values
  uint64_t waiting_pulls = 0;
  uint64_t state_messages = 0;  // of Store and PutState

  friend bool operator==(const ShardActivity&, const ShardActivity&) = default;
};

struct ShardReport {
  ShardState state;
  uint32_t variables = 0;
  uint64_t bytes = 0;
  uint64_t accepted = 0;
  uint64_t stale = 0;
  uint64_t duplicates = 0;
  uint64_t rejected = 0;
  uint64_t held_bytes = 0;
  uint32_t waiting_pulls = 0;
  uint32_t waiting_dequeues = 0;
  uint32_t open_variables = 0;           // those that the step at hand has not taken
  std::vector<PendingVariable> pending;  // the first 8 of them
  std::vector<uint64_t> staleness;       // as in proto/status.proto
};

}  // namespace lockstep::ps
