// A synchronous step without a parameter server: Open MPI's all-reduce, which uses shared memory
// between processes of one machine, then each worker applies SGD to its own variables.
//
//   mpirun -np WORKERS mpi_step WORKERS MEBIBYTES STEPS RELEASE_EVERY_US
#define OMPI_SKIP_MPICXX  // the deprecated C++ interface, which wants a library of its own
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/bench/peers/huge_pages.h"
#include "tests/bench/peers/steps.h"

namespace lockstep::bench {
namespace {

constexpr float kLearningRate = 0.01f;

bool Work(const PeerJob& job, int worker, StepTimes* times) {
  HugePageVector<float> gradient(job.floats);
  HugePageVector<float> sum(job.floats);
  HugePageVector<float> values(job.floats);
  for (int step = 0; step < times->all_steps(); ++step) {
    std::fill(gradient.begin(), gradient.end(), static_cast<float>(step + worker));
    // Other workers wait for this one busily, and would keep it from its processor.
    MPI_Barrier(MPI_COMM_WORLD);
    times->Release(worker, step);
    MPI_Allreduce(gradient.data(), sum.data(), static_cast<int>(job.floats), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    const float rate = kLearningRate / static_cast<float>(job.workers);
    for (size_t i = 0; i < job.floats; ++i) values[i] -= rate * sum[i];
    times->Finish(worker, step);
  }
  const int last = times->all_steps() - 1;
  const int expected = job.workers * last + job.workers * (job.workers - 1) / 2;
  return sum[job.floats / 2] == static_cast<float>(expected);
}

// Every process has a memory of its own: the first one gets all instants.
void Gather(int worker, StepTimes* times) {
  const std::span<int64_t> instants = times->instants();
  const int count = static_cast<int>(instants.size());
  const void* const own = worker == 0 ? MPI_IN_PLACE : instants.data();
  MPI_Reduce(own, instants.data(), count, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
}

int Main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const PeerJob job = ParsePeerJob(argc, argv);
  int worker = 0;
  int workers = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &worker);
  MPI_Comm_size(MPI_COMM_WORLD, &workers);
  StepTimes times(job);
  const bool well = workers == job.workers && Work(job, worker, &times);
  if (well) Gather(worker, &times);
  const int code = worker == 0 || !well
                       ? Report(well, "mpi: mpirun has other workers, or a sum was wrong", times)
                       : 0;
  if (!well) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return code;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) { return lockstep::bench::Main(argc, argv); }
