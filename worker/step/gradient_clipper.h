// What a replica does to its gradients, the mean over its towers, before it pushes them: the job's
// clipping. Statistics are no gradients and pass as they are.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "common/tensor/tensor.h"
#include "proto/job.pb.h"
#include "worker/cache/variable_layout.h"

namespace lockstep::worker {

// Used by one thread.
class GradientClipper {
 public:
  using Send = std::function<void(int variable)>;

  // `send` is called once for each variable that was Ready, clipped by then. Without a kind nothing
  // is clipped. The layout outlives the clipper.
  GradientClipper(const Clipping& clipping, const VariableLayout& layout, Send send)
      : clipping_(clipping), layout_(layout), send_(std::move(send)) {}

  // The gradient of a variable is complete; of a sparse one, its values. Stays where it is until it
  // is sent: at once, or in Finish where all gradients have to be known first.
  void Ready(int variable, MutableTensorView gradient);
  // All gradients of the step were Ready.
  void Finish();

 private:
  struct Held {
    int variable;
    MutableTensorView gradient;
  };

  const Clipping clipping_;
  const VariableLayout& layout_;
  const Send send_;
  std::vector<Held> held_;
};

}  // namespace lockstep::worker
