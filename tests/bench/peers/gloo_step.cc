// A synchronous step without a parameter server: all-reduce over TCP on loopback, then each worker
// applies SGD to its own variables. Gloo's chunked ring, the fastest of its algorithms here.
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

#include "tests/bench/peers/huge_pages.h"
#include "tests/bench/peers/steps.h"

namespace lockstep::bench {
namespace {

constexpr float kLearningRate = 0.01f;

bool Work(const PeerJob& job, int worker, const std::string& folder, StepTimes* times) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(folder);
  const auto context = std::make_shared<gloo::rendezvous::Context>(worker, job.workers);
  context->connectFullMesh(store, device);

  HugePageVector<float> gradient(job.floats);
  HugePageVector<float> values(job.floats);
  gloo::AllreduceRingChunked<float> reduce(context, {gradient.data()},
                                           static_cast<int>(job.floats));
  gloo::BarrierAllToAll barrier(context);
  for (int step = 0; step < times->all_steps(); ++step) {
    std::fill(gradient.begin(), gradient.end(), static_cast<float>(step + worker));
    times->Release(worker, step);
    reduce.run();
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
  const PeerJob job = ParsePeerJob(argc, argv);
  StepTimes times(job);
  std::string folder = std::filesystem::temp_directory_path() / "gloo-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 1;
  }
  const bool well =
      RunWorkers(job.workers, [&](int worker) { return Work(job, worker, folder, &times); });
  std::filesystem::remove_all(folder);
  return Report(well, "gloo: a worker failed, or its sum was wrong", times);
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) { return lockstep::bench::Main(argc, argv); }
