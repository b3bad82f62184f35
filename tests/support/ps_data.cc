#include "tests/support/ps_data.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/tensor/half_copy.h"
#include "common/transport/ps_methods.h"

namespace lockstep {
namespace {

using Spans = std::vector<std::span<const std::byte>>;

struct Payload {
  std::string bytes;
  ReceivedTensors::Segments segments;
};

ReceivedTensors TensorsOf(std::string bytes) {
  const auto payload = std::make_shared<Payload>(Payload{std::move(bytes), {}});
  payload->segments = {std::as_bytes(std::span(payload->bytes))};
  return ReceivedTensors(
      std::shared_ptr<const ReceivedTensors::Segments>(payload, &payload->segments));
}

// What a message carries, and the memory of what is rounded for it.
struct Message {
  Spans spans;
  std::vector<std::vector<std::byte>> rounded;
};

std::shared_ptr<Message> MessageOf(const std::vector<OutgoingTensor>& tensors) {
  auto message = std::make_shared<Message>();
  for (const OutgoingTensor& tensor : tensors) {
    if (!tensor.rounded_to.has_value()) {
      AppendBytes(tensor, &message->spans);
      // One for each, also of no bytes.
      if (tensor.by_reference && tensor.values.empty()) message->spans.emplace_back();
      continue;
    }
    const std::span<const float> elements = RoundedElements(tensor);
    std::vector<std::byte>& memory =
        message->rounded.emplace_back(elements.size() * SizeOf(*tensor.rounded_to));
    Narrow(elements, *tensor.rounded_to, memory.data());
    message->spans.push_back(memory);
  }
  return message;
}

}  // namespace

PulledValues::PulledValues(PullReply header, std::string payload)
    : PulledValues(std::move(header), TensorsOf(std::move(payload))) {}

void PsData::PushPull(const PushRequest& header, Spans payload, Callback<PushPullReply> done) {
  PushRequest alone = header;
  alone.clear_next();
  Push(alone, std::move(payload),
       [done = std::move(done)](absl::StatusOr<PushReply> reply) mutable {
         if (!reply.ok()) return done(reply.status());
         done(PushPullReply{*std::move(reply), nullptr});
       });
}

void PsData::StoreVersion(const StoreVersionRequest& /*header*/, Spans /*payload*/,
                          Callback<StoreVersionReply> done) {
  done(absl::UnimplementedError("this ps stores no versions"));
}

void PsData::PutState(const PutStateRequest& /*header*/, Spans /*payload*/,
                      Callback<PutStateReply> done) {
  done(absl::UnimplementedError("this ps is sent no state"));
}

void PsData::Open(const WorkerIdentity& worker, Callback<TransportInfo> done) {
  ShareMemory(worker, [done = std::move(done)](absl::StatusOr<bool> shares) mutable {
    if (!shares.ok()) return done(shares.status());
    done(TransportInfo{*shares ? absl::OkStatus() : absl::UnavailableError("shares no memory")});
  });
}

void PsData::Start(const CallOptions& options, google::protobuf::Message* header,
                   const std::vector<OutgoingTensor>& tensors, google::protobuf::Message* reply,
                   Callback<ReceivedTensors> done) {
  if (auto* const dequeue = dynamic_cast<DequeueTokenRequest*>(header)) {
    return DequeueToken(
        *dequeue, [reply, done = std::move(done)](absl::StatusOr<DequeueTokenReply> token) mutable {
          if (!token.ok()) return done(token.status());
          dynamic_cast<DequeueTokenReply&>(*reply) = *std::move(token);
          done(ReceivedTensors());
        });
  }
  if (auto* const pull = dynamic_cast<PullRequest*>(header)) {
    pull->set_in_memory(options.accepts_references);
    return Pull(*pull, [reply, done = std::move(done)](
                           absl::StatusOr<std::unique_ptr<PulledValues>> values) mutable {
      if (!values.ok()) return done(values.status());
      dynamic_cast<PullReply&>(*reply) = (*values)->header();
      done((*values)->tensors());
    });
  }
  if (const auto* const state = dynamic_cast<PutStateRequest*>(header)) {
    const std::shared_ptr<Message> message = MessageOf(tensors);
    return PutState(
        *state, message->spans,
        [reply, message, done = std::move(done)](absl::StatusOr<PutStateReply> put) mutable {
          if (!put.ok()) return done(put.status());
          dynamic_cast<PutStateReply&>(*reply) = *std::move(put);
          done(ReceivedTensors());
        });
  }
  if (const auto* const version = dynamic_cast<StoreVersionRequest*>(header)) {
    const std::shared_ptr<Message> message = MessageOf(tensors);
    return StoreVersion(
        *version, message->spans,
        [reply, message, done = std::move(done)](absl::StatusOr<StoreVersionReply> stored) mutable {
          if (!stored.ok()) return done(stored.status());
          dynamic_cast<StoreVersionReply&>(*reply) = *std::move(stored);
          done(ReceivedTensors());
        });
  }
  auto& push = dynamic_cast<PushRequest&>(*header);
  auto& pushed = dynamic_cast<PushReply&>(*reply);
  push.set_in_memory(!tensors.empty() && tensors.front().by_reference);
  const std::shared_ptr<Message> message = MessageOf(tensors);
  if (!push.has_next()) {
    return Push(push, message->spans,
                [&pushed, message, done = std::move(done)](absl::StatusOr<PushReply> got) mutable {
                  if (!got.ok()) return done(got.status());
                  pushed = *std::move(got);
                  done(ReceivedTensors());
                });
  }
  if (push.next().has_pull()) {
    push.mutable_next()->mutable_pull()->set_in_memory(options.accepts_references);
  }
  PushPull(push, message->spans,
           [&pushed, message, done = std::move(done)](absl::StatusOr<PushPullReply> got) mutable {
             if (!got.ok()) return done(got.status());
             pushed = std::move(got->push);
             if (got->values == nullptr) return done(ReceivedTensors());
             *pushed.mutable_next()->mutable_values() = got->values->header();
             done(got->values->tensors());
           });
}

}  // namespace lockstep
