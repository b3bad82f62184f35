#include "tests/extend/transport/in_process_transport.h"

#include "common/base/check.h"
#include "common/tensor/half_copy.h"

namespace lockstep::test {
namespace {

struct Message {
  std::vector<std::byte> bytes;
  ReceivedTensors::Segments segments;
};

void AppendRounded(const OutgoingTensor& tensor, std::vector<std::byte>* bytes) {
  const std::span<const float> elements = RoundedElements(tensor);
  const size_t begin = bytes->size();
  bytes->resize(begin + elements.size() * SizeOf(*tensor.rounded_to));
  Narrow(elements, *tensor.rounded_to, bytes->data() + begin);
}

}  // namespace

ReceivedTensors CopyOf(const std::vector<OutgoingTensor>& tensors) {
  const auto message = std::make_shared<Message>();
  for (const OutgoingTensor& tensor : tensors) {
    LOCKSTEP_CHECK(!tensor.by_reference);
    if (tensor.rounded_to.has_value()) {
      AppendRounded(tensor, &message->bytes);
      continue;
    }
    ReceivedTensors::Segments spans;
    AppendBytes(tensor, &spans);
    for (const ReceivedTensors::Bytes span : spans) {
      message->bytes.insert(message->bytes.end(), span.begin(), span.end());
    }
  }
  message->segments = {message->bytes};
  return ReceivedTensors(
      std::shared_ptr<const ReceivedTensors::Segments>(message, &message->segments));
}

void InProcessTransport::Start(const CallOptions& options, google::protobuf::Message* header,
                               const std::vector<OutgoingTensor>& tensors,
                               google::protobuf::Message* reply, Callback<ReceivedTensors> done) {
  const auto handler = handlers_.find(std::string(options.path));
  if (handler == handlers_.end()) {
    return done(absl::UnimplementedError(absl::StrCat(options.path, ": nobody serves it")));
  }
  const Ready ready = handler->second(*header, CopyOf(tensors), reply, std::move(done));
  bool is_cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled = is_cancelled_;
    std::erase_if(calls_, [](const auto& call) { return call->IsAnswered(); });
    if (!is_cancelled) calls_.push_back(ready.call);
  }
  is_cancelled ? ready.call->Cancel() : ready.deliver();
}

void InProcessTransport::Cancel() {
  std::vector<std::shared_ptr<InProcessCallBase>> calls;
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled_ = true;
    calls.swap(calls_);
  }
  for (const auto& call : calls) call->Cancel();
}

}  // namespace lockstep::test
