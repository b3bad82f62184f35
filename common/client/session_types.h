// Types that a shard session, its plans and their users exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/tensor/tensor.h"
#include "proto/ps.pb.h"

namespace lockstep {

struct SessionOptions {
  WorkerIdentity identity;
  int window = 4;  // messages in flight, each way
  // Time for which an unreachable ps is tried before a call fails with UNAVAILABLE.
  absl::Duration patience = absl::Seconds(120);
  // The type on the wire of dense float32 gradients and values, except of statistics: float32,
  // bfloat16 or float16. With a ps that shares memory always float32.
  DType wire_dtype = DType::kFloat32;
  // Values are the newest that the ps has, not of one version. A local step below the shard's step
  // is nothing unusual: only a shard that is done drops gradients.
  bool asynchronous = false;
  bool averages = false;  // as PullRequest.averages
  std::string slot = "";  // as PullRequest.slot

  size_t push_chunk_bytes = 512 * 1024;
  size_t bucket_bytes = 64 * 1024;  // tensors up to this size share messages
  // Row indices in a message whose values are sent by reference. The limit leaves room for a
  // request of the next values (common/rpc/limits.h).
  size_t index_bytes = 8 * 1024 * 1024;
  // Tensors in a message by reference. If there are many, the ps judges and applies the first while
  // the next are still being listed.
  size_t most_references = 512;
  size_t fetch_chunk_bytes = 1024 * 1024;
  // Values copied out of the ps's memory at once: large, since no byte is sent. Sent as bytes they
  // fit a message, too.
  size_t shared_chunk_bytes = 4 * 1024 * 1024;
  // A gradient that is one message of at most this many bytes waits for EndStep, to take the
  // requests of the next step along. 0: none waits. Set it only if the step ends with a token later
  // than the gradient's local step, and needs no second gradient of any worker. Under FIFO a worker
  // may have to push twice, and would wait here.
  uint64_t most_fused_bytes = 0;
};

// A gradient of one variable, or a value that is averaged into a statistic.
struct GradientTensor {
  VariableId id;
  Shape shape;  // the variable's
  TensorView values;
  bool is_sparse = false;
  // For a sparse gradient: the row of each value. Rows that ascend, each once (indexed_slices.h),
  // take the fewest bytes. Other orders are merged as in TensorFlow.
  absl::Span<const int64_t> indices = {};
  bool is_statistic = false;  // travels in its own type
};

struct PushSummary {
  uint32_t accepted = 0;  // variables
  uint32_t stale = 0;
  bool done = false;  // asynchronous: the shard has applied its last step
  // The next token, if it came along; otherwise it is to be dequeued.
  std::optional<DequeueTokenReply> token = {};
};

struct FetchTarget {
  VariableId variable;
  // Filled by the fetch. Nothing is fetched for a target without elements.
  MutableTensorView value;
  // For a sparse variable: fetches these rows alone, value[i] is row rows[i].
  std::optional<std::span<const int64_t>> rows = {};
  // If the ps shows its values, `value` stays as it is: ShardSession::Value returns their place.
  bool in_place = false;
  // Sent in its own type, also with a narrower wire type: new statistics are computed from old
  // ones, and rounding would keep small changes from adding up.
  bool is_statistic = false;
};

enum class FetchKind {
  kPresent,  // values that exist: a window of requests in flight
  kAhead,    // of a version to come: every request at once, each answered when its values are made
};

}  // namespace lockstep
