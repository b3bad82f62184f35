// Common code of stream clients whose queue has one operation at a time.
#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <catch2/catch.hpp>

namespace lockstep::rpc {

// Waits for the operation at hand. False: it has failed, or the queue is empty and shut down.
inline bool NextSucceeds(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue->Next(&tag, &ok) && ok;
}

// Waits for the end of the call.
inline grpc::StatusCode EndOf(grpc::GenericClientAsyncReaderWriter* stream,
                              grpc::CompletionQueue* queue) {
  grpc::Status status;
  stream->Finish(&status, nullptr);
  REQUIRE(NextSucceeds(queue));
  return status.error_code();
}

}  // namespace lockstep::rpc
