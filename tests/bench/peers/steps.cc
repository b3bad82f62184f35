#include "tests/bench/peers/steps.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace lockstep::bench {
namespace {

using Time = std::chrono::steady_clock;

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Time::now().time_since_epoch())
      .count();
}

int64_t* Share(size_t count) {
  void* const memory = mmap(nullptr, count * sizeof(int64_t), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    std::exit(1);
  }
  return static_cast<int64_t*>(memory);
}

}  // namespace

PeerJob ParsePeerJob(int argc, char** argv) {
  PeerJob job;
  if (argc == 5) {
    job.workers = std::atoi(argv[1]);
    job.floats = static_cast<size_t>(std::atoi(argv[2])) << 18;
    job.steps = std::atoi(argv[3]);
    job.release_every = std::atoll(argv[4]);
  }
  if (job.workers < 1 || job.floats < 1 || job.steps < 1 || job.release_every < 1) {
    std::fprintf(stderr, "usage: %s WORKERS MEBIBYTES STEPS RELEASE_EVERY_US\n", argv[0]);
    std::exit(64);
  }
  return job;
}

StepTimes::StepTimes(const PeerJob& job)
    : job_(job), times_(Share(2 * static_cast<size_t>(job.workers) * all_steps())) {}

void StepTimes::Release(int worker, int step) {
  const int64_t tick = (Now() / job_.release_every + 1) * job_.release_every;
  std::this_thread::sleep_until(Time::time_point(std::chrono::microseconds(tick)));
  released(worker, step) = Now();
}

void StepTimes::Finish(int worker, int step) { finished(worker, step) = Now(); }

void StepTimes::Print() const {
  for (int step = kWarmUpSteps; step < all_steps(); ++step) {
    int64_t start = released(0, step);
    int64_t last_start = start;
    int64_t end = 0;
    for (int worker = 0; worker < job_.workers; ++worker) {
      start = std::min(start, released(worker, step));
      last_start = std::max(last_start, released(worker, step));
      end = std::max(end, finished(worker, step));
    }
    const bool together = start / job_.release_every == last_start / job_.release_every;
    if (together) std::printf("%.3f ", static_cast<double>(end - start) / 1000);
  }
  std::printf("\n");
}

bool RunWorkers(int workers, const std::function<bool(int worker)>& work) {
  std::vector<pid_t> pids;
  for (int worker = 0; worker < workers; ++worker) {
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      _exit(work(worker) ? 0 : 1);
    }
    pids.push_back(pid);
  }
  bool all_well = true;
  for (const pid_t pid : pids) {
    int status = 0;
    all_well = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && all_well;
  }
  return all_well;
}

int Report(bool well, const char* failure, const StepTimes& times) {
  if (well) {
    times.Print();
  } else {
    std::fprintf(stderr, "%s\n", failure);
  }
  return well ? 0 : 1;
}

}  // namespace lockstep::bench
