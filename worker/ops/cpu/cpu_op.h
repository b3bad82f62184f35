// The ops of a CPU: functions that the host runs when the stream comes to them.
#pragma once

#include "worker/ops/gradient_op.h"
#include "worker/ops/loss.h"
#include "worker/ops/op.h"

namespace lockstep::worker::cpu {

// The Run functions may throw what oneDNN throws; the device's error says so.
class CpuOp : public Op {
 public:
  absl::Status Forward(const ForwardArgs& args, Stream* stream) final;
  absl::Status Backward(const BackwardArgs& args, Stream* stream) final;

 private:
  virtual void RunForward(const ForwardArgs& args) = 0;
  virtual void RunBackward(const BackwardArgs& args) = 0;
};

class CpuLoss : public Loss {
 public:
  absl::Status Train(const Args& args, Stream* stream) final;
  absl::Status Evaluate(const Args& args, Stream* stream) final;
  absl::Status Predict(const Args& args, Stream* stream) final;

 private:
  virtual void RunTrain(const Args& args) = 0;
  virtual void RunEvaluate(const Args& args) = 0;
  virtual void RunPredict(const Args& args) = 0;
};

class CpuGradientOp : public GradientOp {
 public:
  absl::Status Run(const Args& args, Stream* stream) final;

 private:
  virtual void RunNow(const Args& args) = 0;
};

}  // namespace lockstep::worker::cpu
