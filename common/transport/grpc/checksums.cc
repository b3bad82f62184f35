#include "common/transport/grpc/checksums.h"

#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/printable.h"
#include "common/log/log.h"
#include "common/log/throttle.h"
#include "common/wire/byte_buffer.h"
#include "common/wire/message_checksum.h"

namespace lockstep {
namespace {

// Of a header, which can name many pieces: the first tell worker, step and variable.
constexpr size_t kMaxHeader = 300;

// One of the process: a peer behind a bad link must not fill its log. Thread-safe.
class CorruptMessageLog {
 public:
  void Write(const absl::Status& error) {
    const std::string line =
        absl::StrCat("dropped a corrupt message, its call is made again: ", error.message(),
                     ". Remedy, where there are many: check memory and network of both hosts");
    std::optional<std::string> admitted;
    {
      absl::MutexLock lock(&mutex_);
      admitted = throttle_.Admit(line, Clock::Real()->Monotonic());
    }
    if (admitted.has_value()) log::Warning(*admitted);
  }

 private:
  absl::Mutex mutex_;
  log::Throttle throttle_ ABSL_GUARDED_BY(mutex_);
};

absl::Status Refuse(absl::string_view sender, const grpc::ByteBuffer& message,
                    const absl::Status& why, google::protobuf::Message* header) {
  // What the message is about, as far as it can be read.
  wire::DecodeWithPayload(message, header).status().IgnoreError();
  const std::string about = Printable(header->ShortDebugString(), kMaxHeader);
  const absl::Status error = absl::DataLossError(
      absl::StrCat(header->GetDescriptor()->name(), " of ", sender, ": ", why.message(),
                   about.empty() ? "" : "; its header: ", about));
  wire::CountCorruptMessage();
  static auto* const lines = new CorruptMessageLog;  // also for calls at the end
  lines->Write(error);
  return error;
}

template <typename Metadata>
std::optional<absl::string_view> FindChecksum(const Metadata& metadata) {
  const auto found = metadata.find(wire::kChecksumKey);
  if (found == metadata.end()) return std::nullopt;
  return absl::string_view(found->second.data(), found->second.size());
}

}  // namespace

absl::Status CheckRequest(const grpc::ServerContext& context, const grpc::ByteBuffer& request,
                          bool must_have, google::protobuf::Message* header) {
  const std::optional<absl::string_view> checksum = FindChecksum(context.client_metadata());
  if (!checksum.has_value() && !must_have) return absl::OkStatus();
  const absl::Status status =
      checksum.has_value() ? wire::VerifyChecksum(request, *checksum) : wire::NoChecksum(request);
  return status.ok() ? status : Refuse(context.peer(), request, status, header);
}

void AddToReply(const grpc::ByteBuffer& reply, grpc::ServerContext* context) {
  if (!FindChecksum(context->client_metadata()).has_value()) return;
  context->AddInitialMetadata(wire::kChecksumKey, wire::ChecksumOf(reply));
}

void AddToRequest(const grpc::ByteBuffer& request, grpc::ClientContext* context) {
  context->AddMetadata(wire::kChecksumKey, wire::ChecksumOf(request));
}

std::string ChecksumOfReply(const grpc::ClientContext& context) {
  return std::string(FindChecksum(context.GetServerInitialMetadata()).value_or(""));
}

absl::Status CheckReply(absl::string_view peer, const grpc::ByteBuffer& reply,
                        absl::string_view checksum, google::protobuf::Message* header) {
  if (checksum.empty()) {
    const absl::StatusOr<wire::ReceivedPayload> payload = wire::DecodeWithPayload(reply, header);
    if (!payload.ok() || payload->bytes() == 0) return absl::OkStatus();
    return Refuse(peer, reply, wire::NoChecksum(reply), header);
  }
  const absl::Status status = wire::VerifyChecksum(reply, checksum);
  return status.ok() ? status : Refuse(peer, reply, status, header);
}

}  // namespace lockstep
