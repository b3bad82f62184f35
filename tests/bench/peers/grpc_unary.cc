// One unary gRPC call at a time between two processes over TCP on loopback, as fast as gRPC does
// it: raw bytes on completion queues. Bytes go there and come back.
//
//   grpc_unary BYTES CALLS    prints the milliseconds of each call, on one line
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace lockstep::bench {
namespace {

constexpr int kWarmUpCalls = 200;

// Whether the next event is a success.
bool Next(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue->Next(&tag, &ok) && ok;
}

// Sends back what comes. Writes the port to `port_fd`.
[[noreturn]] void Serve(int port_fd) {
  grpc::AsyncGenericService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterAsyncGenericService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (write(port_fd, &port, sizeof port) != sizeof port) _exit(1);
  while (true) {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter call(&context);
    service.RequestCall(&context, &call, queue.get(), queue.get(), nullptr);
    grpc::ByteBuffer bytes;
    if (!Next(queue.get())) _exit(1);
    call.Read(&bytes, nullptr);
    if (!Next(queue.get())) _exit(1);
    call.WriteAndFinish(bytes, grpc::WriteOptions(), grpc::Status::OK, nullptr);
    if (!Next(queue.get())) _exit(1);
  }
}

bool Call(grpc::GenericStub* stub, grpc::CompletionQueue* queue, const grpc::ByteBuffer& request) {
  grpc::ClientContext context;
  const auto call = stub->PrepareUnaryCall(&context, "/Echo/Echo", request, queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, nullptr);
  return Next(queue) && status.ok() && reply.Length() == request.Length();
}

int Main(int argc, char** argv) {
  const int bytes = argc == 3 ? std::atoi(argv[1]) : 0;
  const int calls = argc == 3 ? std::atoi(argv[2]) : 0;
  if (bytes < 1 || calls < 1) {
    std::fprintf(stderr, "usage: %s BYTES CALLS\n", argv[0]);
    return 64;
  }
  int pipe_fds[2];
  if (pipe(pipe_fds) != 0) return 1;
  const pid_t server = fork();
  if (server == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Serve(pipe_fds[1]);
  }
  int port = 0;
  if (read(pipe_fds[0], &port, sizeof port) != sizeof port) return 1;

  grpc::GenericStub stub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  grpc::CompletionQueue queue;
  const grpc::Slice payload(std::string(bytes, 'x'));
  const grpc::ByteBuffer request(&payload, 1);
  for (int i = 0; i < kWarmUpCalls + calls; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (!Call(&stub, &queue, request)) return 1;
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (i >= kWarmUpCalls) std::printf("%.4f ", took.count());
  }
  std::printf("\n");
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) { return lockstep::bench::Main(argc, argv); }
