// Holds an op against its double-precision reference: the output directly, the gradients by central
// differences of the reference.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "tests/reference/array.h"
#include "worker/ops/cpu/ops.h"
#include "worker/ops/loss.h"
#include "worker/ops/op_table.h"
#include "worker/tower/row_lists.h"
#include "worker/tower/staging.h"

namespace lockstep::worker {

// Ops of the test's device for this many threads, and a stream of it. The device is that of
// tests/support/test_device.h.
class TestOps {
 public:
  explicit TestOps(int threads);
  explicit TestOps(std::shared_ptr<Device> device, const OpTable& table = cpu::Ops());

  // Ops of layers are of type().
  template <typename Options>
  OpTable::MadeOr<typename Options::Made> Make(Options options) {
    if constexpr (std::is_base_of_v<OpOptions, Options>) options.type = type();
    device_->MakeCurrent();
    return table_.Make(context_.get(), options);
  }

  // Of what is between layers.
  DType type() const { return table_.activations(); }
  // What the device has of it in that type.
  reference::Array Rounded(reference::Array array) const;
  Device* device() { return device_.get(); }
  Stream* stream() { return stream_.get(); }
  // Waits until all work is done.
  absl::Status Finish();

 private:
  const std::shared_ptr<Device> device_;
  const OpTable& table_;
  std::unique_ptr<OpContext> context_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> finished_;
};

// REQUIREs that there is one.
std::unique_ptr<Op> Made(OpTable::MadeOr<Op> op);

// An op with its operands in memory of the right shapes, on the host in float32, on the device in
// the op's type. Results start as NaN, so that what the op leaves out shows.
struct OpRun {
  OpRun(TestOps& ops, const std::vector<reference::Array>& inputs,
        const std::vector<reference::Array>& variables, const std::vector<int64_t>& output_dims);

  reference::Array Forward(Op& op, Mode mode, uint64_t random_key = 0);
  // In training, writing over the first input.
  reference::Array ForwardOver(Op& op);
  // After Forward. `want_inputs`: whether the gradients of the inputs are asked for.
  void Backward(Op& op, const reference::Array& output_gradient, bool want_inputs = true);

  // Which rows the variables hold, where they are tables in part.
  std::vector<std::span<const int64_t>> rows;
  std::vector<Tensor> inputs;
  std::vector<Tensor> variables;
  Tensor output;
  std::vector<Tensor> input_gradients;
  std::vector<Tensor> variable_gradients;

 private:
  // Has it on the device, in this type.
  MutableTensorView Upload(int place, const Tensor& host, DType type);
  std::vector<MutableTensorView> UploadAll(const std::vector<Tensor>& hosts, int first_place,
                                           DType type);
  void Download(const MutableTensorView& view, Tensor& host);
  void Download(const std::vector<MutableTensorView>& views, std::vector<Tensor>& hosts);
  // Waits until all work is done and has what was downloaded.
  void Finish();

  struct Rounded {
    Tensor tensor;
    Tensor* to;  // null: it was uploaded
  };

  TestOps& ops_;
  Staging staging_;
  RowLists row_lists_;
  std::deque<Rounded> rounded_;  // what the device copies in another type
  int inputs_at_ = 0;            // their first place; likewise
  int variables_at_ = 0;
  int output_at_ = 0;
  int random_key_at_ = 0;
  int output_gradient_at_ = 0;
  int input_gradients_at_ = 0;
  int variable_gradients_at_ = 0;
  std::vector<TensorView> input_views_;
  std::vector<TensorView> variable_views_;
  MutableTensorView output_view_;
};

// A loss with its operands on the device.
class LossRun {
 public:
  LossRun(TestOps& ops, Loss& loss, const Tensor& outputs, const Tensor& labels);

  // The mean over the batch.
  float Train(Tensor* gradient);
  // [Loss::kNumSums]
  std::vector<double> Evaluate();
  Tensor Predict();

 private:
  // Calls the loss and brings the result to `host`.
  void Run(absl::Status (Loss::*call)(const Loss::Args&, Stream*), Tensor* gradient, Tensor* host);

  TestOps& ops_;
  Loss& loss_;
  const Tensor& outputs_;
  const Tensor& labels_;
};

using ReferenceFunction = std::function<reference::Array(
    const std::vector<reference::Array>& inputs, const std::vector<reference::Array>& variables)>;

// CHECKs output and gradients of `op`, made for training; `differentiated`: how many of the
// variables, from the first, have gradients; `of_inputs`: whether the inputs have.
void CheckOp(TestOps& ops, Op& op, std::vector<reference::Array> inputs,
             std::vector<reference::Array> variables, size_t differentiated,
             const ReferenceFunction& reference, bool of_inputs = true);

}  // namespace lockstep::worker
