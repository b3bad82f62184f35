#include "common/wire/message_checksum.h"

#include <grpcpp/support/slice.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace lockstep::wire {
namespace {

grpc::ByteBuffer BufferOf(const std::vector<std::string>& pieces) {
  std::vector<grpc::Slice> slices(pieces.begin(), pieces.end());
  return grpc::ByteBuffer(slices.data(), slices.size());
}

TEST_CASE("The checksum of a message is the CRC32C of its bytes, however they are cut") {
  CHECK(ChecksumOf(BufferOf({"123456789"})) == "e3069283");
  CHECK(ChecksumOf(BufferOf({"1234", "", "56789"})) == "e3069283");
  CHECK(ChecksumOf(BufferOf({std::string(32, '\0')})) == "8a9136aa");
  CHECK(ChecksumOf(BufferOf({std::string(32, '\xff')})) == "62a8ab43");
  CHECK(ChecksumOf(BufferOf({""})) == "00000000");
}

TEST_CASE("Each flipped bit of a message is found, and the error names both checksums") {
  const std::string sent(300, 'a');
  const std::string checksum = ChecksumOf(BufferOf({sent}));
  CHECK(VerifyChecksum(BufferOf({sent}), checksum).ok());
  for (size_t bit = 0; bit < 8 * sent.size(); ++bit) {
    std::string received = sent;
    received[bit / 8] = static_cast<char>(received[bit / 8] ^ (1 << bit % 8));
    const absl::Status status = VerifyChecksum(BufferOf({received}), checksum);
    REQUIRE(absl::IsDataLoss(status));
    const std::string got = ChecksumOf(BufferOf({received}));
    REQUIRE(status.message() ==
            "changed on its way: 300 bytes, expected CRC32C " + checksum + ", got " + got);
  }
}

TEST_CASE("A checksum of another form is not that of a message") {
  const grpc::ByteBuffer message = BufferOf({"123456789"});
  for (const std::string checksum : {"", "E3069283", "e306928", "e30692830", "\n\n"}) {
    CHECK(absl::IsDataLoss(VerifyChecksum(message, checksum)));
  }
  CHECK(NoChecksum(message).message() ==
        "9 bytes, expected metadata lockstep-crc32c, which the job's transport.checksums requires, "
        "got none");
}

}  // namespace
}  // namespace lockstep::wire
