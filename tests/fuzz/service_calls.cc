#include "tests/fuzz/service_calls.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {
namespace {

constexpr size_t kMostCalls = 16;
constexpr std::chrono::milliseconds kPatience(5);

struct Call {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer reply;
  grpc::Status status;
};

}  // namespace

uint8_t NumberOf(absl::string_view method) {
  uint8_t number = 0;
  for (const char c : method) number = static_cast<uint8_t>(number * 31 + c);
  return number;
}

std::vector<ServiceCall> CallsOf(absl::Span<const absl::string_view> services,
                                 absl::string_view input) {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const absl::string_view service : services) {
    const google::protobuf::ServiceDescriptor* const found =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(std::string(service));
    LOCKSTEP_CHECK(found != nullptr);
    for (int i = 0; i < found->method_count(); ++i) methods.push_back(found->method(i));
  }
  const auto named_by = [&](uint8_t number) {
    return *std::ranges::min_element(methods, {}, [&](const auto* method) {
      return static_cast<uint8_t>(NumberOf(method->name()) - number);
    });
  };
  std::vector<ServiceCall> calls;
  while (input.size() >= 3 && calls.size() < kMostCalls) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(input[i]); };
    const size_t size = byte(1) + 256 * byte(2);
    const google::protobuf::MethodDescriptor* const method = named_by(byte(0));
    calls.push_back(
        {method->service()->full_name(), method->name(), std::string(input.substr(3, size))});
    input.remove_prefix(std::min(input.size(), 3 + size));
  }
  return calls;
}

void MakeCalls(const std::string& address, const std::vector<ServiceCall>& calls) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Call>> made;
  size_t answered = 0;
  void* tag = nullptr;
  bool ok = false;
  for (const ServiceCall& call : calls) {
    Call& one = *made.emplace_back(std::make_unique<Call>());
    const grpc::Slice bytes(call.message);
    one.reader =
        stub.PrepareUnaryCall(&one.context, absl::StrCat("/", call.service, "/", call.method),
                              grpc::ByteBuffer(&bytes, 1), &queue);
    one.reader->StartCall();
    one.reader->Finish(&one.reply, &one.status, &one);
    const auto deadline = std::chrono::system_clock::now() + kPatience;
    while (answered < made.size() &&
           queue.AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT) {
      ++answered;
    }
  }
  for (const auto& call : made) call->context.TryCancel();
  while (answered < made.size() && queue.Next(&tag, &ok)) ++answered;
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  for (const auto& call : made) {
    if (call->status.ok()) continue;
    const std::string& text = call->status.error_message();
    if (!text.empty()) CheckMessage(absl::UnknownError(text));
  }
}

}  // namespace lockstep::fuzz
