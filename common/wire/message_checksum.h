// CRC32C of a message as gRPC sends it, header and payload: found where bytes have changed on their
// way that TCP's checksum of 16 bits did not protect. Metadata of the call carries it.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep::wire {

// The key in the metadata. Its value is the checksum in 8 hexadecimal digits, lower case.
inline constexpr char kChecksumKey[] = "lockstep-crc32c";

// The value for a message. Reads all of it, and allocates nothing.
std::string ChecksumOf(const grpc::ByteBuffer& message);

// DATA_LOSS naming both: `checksum` is another one than the message's.
absl::Status VerifyChecksum(const grpc::ByteBuffer& message, absl::string_view checksum);
// DATA_LOSS: there must be one.
absl::Status NoChecksum(const grpc::ByteBuffer& message);

// Messages that this process has refused for one of these errors, and their number.
void CountCorruptMessage();
uint64_t NumCorruptMessages();

}  // namespace lockstep::wire
