#include "common/wire/message_checksum.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <atomic>
#include <cstddef>
#include <span>

#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "common/checksum/crc32c.h"

namespace lockstep::wire {
namespace {

// Of a value that a peer sent.
constexpr size_t kMaxShown = 16;

std::atomic<uint64_t> num_corrupt_messages = 0;

}  // namespace

std::string ChecksumOf(const grpc::ByteBuffer& message) {
  uint32_t crc = 0;
  // The reader takes a pointer, and changes nothing.
  grpc::ProtoBufferReader reader(const_cast<grpc::ByteBuffer*>(&message));
  const void* data = nullptr;
  int size = 0;
  while (reader.Next(&data, &size)) {
    crc = ExtendCrc32c(crc, {static_cast<const std::byte*>(data), static_cast<size_t>(size)});
  }
  return absl::StrCat(absl::Hex(crc, absl::kZeroPad8));
}

absl::Status VerifyChecksum(const grpc::ByteBuffer& message, absl::string_view checksum) {
  const std::string got = ChecksumOf(message);
  if (got == checksum) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("changed on its way: ", message.Length(),
                                          " bytes, expected CRC32C ",
                                          Printable(checksum, kMaxShown), ", got ", got));
}

absl::Status NoChecksum(const grpc::ByteBuffer& message) {
  return absl::DataLossError(absl::StrCat(message.Length(), " bytes, expected metadata ",
                                          kChecksumKey,
                                          ", which the job's transport.checksums "
                                          "requires, got none"));
}

void CountCorruptMessage() { num_corrupt_messages.fetch_add(1, std::memory_order_relaxed); }
uint64_t NumCorruptMessages() { return num_corrupt_messages.load(std::memory_order_relaxed); }

}  // namespace lockstep::wire
