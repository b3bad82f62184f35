#include "worker/device/cuda/cuda_graph.h"

namespace lockstep::worker::cuda {

CudaGraph::~CudaGraph() {
  device_->MakeCurrent();
  const CUresult result = device_->driver()->GraphExecDestroy(graph_);
  if (result != kSuccess) device_->Fail(result, "cuGraphExecDestroy");
}

}  // namespace lockstep::worker::cuda
