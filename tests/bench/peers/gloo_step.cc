// A synchronous step without a parameter server: all-reduce over TCP on loopback, then each worker
// applies SGD to its own variables. Gloo's chunked ring, the fastest of its algorithms here, or
// with a fifth argument, halving_doubling, that one.
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/peers/huge_pages.h"
#include "tests/bench/peers/steps.h"

namespace lockstep::bench {
namespace {

constexpr float kLearningRate = 0.01f;

std::unique_ptr<gloo::Algorithm> MakeAllReduce(bool halving_doubling,
                                               const std::shared_ptr<gloo::Context>& context,
                                               float* gradient, size_t floats) {
  const std::vector<float*> gradients = {gradient};
  const int count = static_cast<int>(floats);
  if (halving_doubling) {
    return std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context, gradients, count);
  }
  return std::make_unique<gloo::AllreduceRingChunked<float>>(context, gradients, count);
}

bool Work(const PeerJob& job, bool halving_doubling, int worker, const std::string& folder,
          StepTimes* times) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(folder);
  const auto context = std::make_shared<gloo::rendezvous::Context>(worker, job.workers);
  context->connectFullMesh(store, device);

  HugePageVector<float> gradient(job.floats);
  HugePageVector<float> values(job.floats);
  const auto reduce = MakeAllReduce(halving_doubling, context, gradient.data(), job.floats);
  gloo::BarrierAllToAll barrier(context);
  for (int step = 0; step < times->all_steps(); ++step) {
    std::fill(gradient.begin(), gradient.end(), static_cast<float>(step + worker));
    times->Release(worker, step);
    reduce->run();
    const float rate = kLearningRate / static_cast<float>(job.workers);
    for (size_t i = 0; i < job.floats; ++i) values[i] -= rate * gradient[i];
    times->Finish(worker, step);
  }
  const int last = times->all_steps() - 1;
  const int sum = job.workers * last + job.workers * (job.workers - 1) / 2;
  barrier.run();
  usleep(100'000);  // gloo takes a peer that closes first for a failure
  return gradient[job.floats / 2] == static_cast<float>(sum);
}

int Main(int argc, char** argv) {
  const bool halving_doubling = argc == 6 && std::string(argv[5]) == "halving_doubling";
  const PeerJob job = ParsePeerJob(halving_doubling ? 5 : argc, argv);
  StepTimes times(job);
  std::string folder = std::filesystem::temp_directory_path() / "gloo-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 1;
  }
  const bool well = RunWorkers(
      job.workers, [&](int worker) { return Work(job, halving_doubling, worker, folder, &times); });
  std::filesystem::remove_all(folder);
  return Report(well, "gloo: a worker failed, or its sum was wrong", times);
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) { return lockstep::bench::Main(argc, argv); }
