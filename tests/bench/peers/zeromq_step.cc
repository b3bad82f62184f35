// A synchronous step over a parameter server of the ps-lite kind, at its best: ZeroMQ's ROUTER and
// DEALER over TCP on loopback, sends without copies, a window of chunks in flight, gradients summed
// and applied block by block when the last has come, one thread. It knows no failure and checks
// nothing.
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/bench/peers/huge_pages.h"
#include "tests/bench/peers/steps.h"

namespace lockstep::bench {
namespace {

constexpr size_t kChunkFloats = 128 * 1024;  // 512 KiB
constexpr size_t kBlockFloats = 8192;        // stays in the cache from the sum to the update
constexpr size_t kWindow = 8;
constexpr float kLearningRate = 0.01f;

struct Header {
  uint32_t chunk;
  uint32_t step;
};

// The memory goes back to the system and comes again page by page otherwise.
void KeepHeap() {
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TOP_PAD, 64 << 20);
}

void* Socket(int type) {
  void* const socket = zmq_socket(zmq_ctx_new(), type);
  const int unlimited = 0;
  zmq_setsockopt(socket, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
  zmq_setsockopt(socket, ZMQ_RCVHWM, &unlimited, sizeof unlimited);
  return socket;
}

void SendInPlace(void* socket, const Header& header, float* data) {
  zmq_msg_t message;
  zmq_msg_init_data(
      &message, data, kChunkFloats * sizeof(float), [](void*, void*) {}, nullptr);
  zmq_send(socket, &header, sizeof header, ZMQ_SNDMORE);
  zmq_msg_send(&message, socket, 0);
}

zmq_msg_t Receive(void* socket) {
  zmq_msg_t message;
  zmq_msg_init(&message);
  if (zmq_msg_recv(&message, socket, 0) < 0) std::abort();
  return message;
}

Header ReceiveHeader(void* socket) {
  zmq_msg_t message = Receive(socket);
  Header header;
  std::memcpy(&header, zmq_msg_data(&message), sizeof header);
  zmq_msg_close(&message);
  return header;
}

class Server {
 public:
  explicit Server(const PeerJob& job)
      : job_(job), slots_(job.floats / kChunkFloats), block_(kBlockFloats) {
    for (HugePageVector<float>& version : versions_) version.assign(job.floats, 0);
    socket_ = Socket(ZMQ_ROUTER);
    if (zmq_bind(socket_, "tcp://127.0.0.1:*") != 0) std::abort();
  }

  std::string Endpoint() {
    char endpoint[256];
    size_t size = sizeof endpoint;
    zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, endpoint, &size);
    return endpoint;
  }

  [[noreturn]] void Serve() {
    while (true) {
      zmq_msg_t sender = Receive(socket_);
      const Header header = ReceiveHeader(socket_);
      Slot& slot = slots_[header.chunk];
      slot.gradients.push_back(Receive(socket_));
      slot.senders.emplace_back(static_cast<char*>(zmq_msg_data(&sender)), zmq_msg_size(&sender));
      zmq_msg_close(&sender);
      if (slot.gradients.size() == static_cast<size_t>(job_.workers)) Close(header, &slot);
    }
  }

 private:
  // What has come of one chunk.
  struct Slot {
    std::vector<zmq_msg_t> gradients;
    std::vector<std::string> senders;
  };

  void Close(const Header& header, Slot* slot) {
    const size_t first = header.chunk * kChunkFloats;
    const float* const old_values = &versions_[(header.step + 1) % 2][first];
    float* const new_values = &versions_[header.step % 2][first];
    for (size_t begin = 0; begin < kChunkFloats; begin += kBlockFloats) {
      Apply(*slot, begin, old_values + begin, new_values + begin);
    }
    for (int i = 0; i < job_.workers; ++i) {
      zmq_msg_close(&slot->gradients[i]);
      zmq_send(socket_, slot->senders[i].data(), slot->senders[i].size(), ZMQ_SNDMORE);
      SendInPlace(socket_, header, new_values);
    }
    slot->gradients.clear();
    slot->senders.clear();
  }

  void Apply(Slot& slot, size_t begin, const float* old_values, float* new_values) {
    const auto gradient = [&](int i) {
      return static_cast<const float*>(zmq_msg_data(&slot.gradients[i])) + begin;
    };
    std::memcpy(block_.data(), gradient(0), kBlockFloats * sizeof(float));
    for (int k = 1; k < job_.workers; ++k) {
      const float* const other = gradient(k);
      for (size_t i = 0; i < kBlockFloats; ++i) block_[i] += other[i];
    }
    const float rate = kLearningRate / static_cast<float>(job_.workers);
    for (size_t i = 0; i < kBlockFloats; ++i) new_values[i] = old_values[i] - rate * block_[i];
  }

  const PeerJob job_;
  HugePageVector<float> versions_[2];  // a reply is sent from one while the next is written
  std::vector<Slot> slots_;
  std::vector<float> block_;
  void* socket_;
};

bool Work(const PeerJob& job, int worker, const std::string& endpoint, StepTimes* times) {
  void* const socket = Socket(ZMQ_DEALER);
  if (zmq_connect(socket, endpoint.c_str()) != 0) return false;
  const size_t chunks = job.floats / kChunkFloats;
  HugePageVector<float> gradient(job.floats);
  HugePageVector<float> values(job.floats);
  for (int step = 0; step < times->all_steps(); ++step) {
    std::fill(gradient.begin(), gradient.end(), 1e-3f * static_cast<float>(worker + 1));
    times->Release(worker, step);
    size_t sent = 0;
    const auto send = [&] {
      SendInPlace(socket, {static_cast<uint32_t>(sent), static_cast<uint32_t>(step)},
                  &gradient[sent * kChunkFloats]);
      ++sent;
    };
    while (sent < std::min(chunks, kWindow)) send();
    for (size_t received = 0; received < chunks; ++received) {
      const Header header = ReceiveHeader(socket);
      zmq_msg_t data = Receive(socket);
      if (sent < chunks) send();
      std::memcpy(&values[header.chunk * kChunkFloats], zmq_msg_data(&data),
                  kChunkFloats * sizeof(float));
      zmq_msg_close(&data);
    }
    times->Finish(worker, step);
  }
  const double mean = 1e-3 * (job.workers + 1) / 2;
  const double wanted = -kLearningRate * mean * times->all_steps();
  return std::abs(values[job.floats / 2] - wanted) <= 1e-4 * std::abs(wanted);
}

int Main(int argc, char** argv) {
  const PeerJob job = ParsePeerJob(argc, argv);
  StepTimes times(job);
  KeepHeap();
  int endpoint_pipe[2];
  if (pipe(endpoint_pipe) != 0) return 1;
  const pid_t server = fork();
  if (server == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Server serving(job);
    const std::string endpoint = serving.Endpoint();
    if (write(endpoint_pipe[1], endpoint.data(), endpoint.size()) < 0) _exit(1);
    serving.Serve();
  }
  char endpoint[256] = {};
  if (read(endpoint_pipe[0], endpoint, sizeof endpoint - 1) <= 0) return 1;
  const bool well =
      RunWorkers(job.workers, [&](int worker) { return Work(job, worker, endpoint, &times); });
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  return Report(well, "ZeroMQ: a worker failed, or its values were wrong", times);
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) { return lockstep::bench::Main(argc, argv); }
