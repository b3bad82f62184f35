// Work of a GPU's stream that was captured, ready to be launched.
#pragma once

#include <cstddef>

#include "worker/device/cuda/cuda_device.h"
#include "worker/device/stream.h"

namespace lockstep::worker::cuda {

// Bytes that one run of some work copies.
struct CopiedBytes {
  size_t to_device = 0;
  size_t to_host = 0;
};

class CudaGraph : public WorkGraph {
 public:
  // Takes `graph`, which is of `device` and copies so much.
  CudaGraph(const CudaDevice* device, CUgraphExec graph, const CopiedBytes& copied)
      : device_(device), graph_(graph), copied_(copied) {}
  ~CudaGraph() override;

  CUgraphExec get() const { return graph_; }
  const CopiedBytes& copied() const { return copied_; }

 private:
  const CudaDevice* const device_;
  const CUgraphExec graph_;
  const CopiedBytes copied_;
};

}  // namespace lockstep::worker::cuda
