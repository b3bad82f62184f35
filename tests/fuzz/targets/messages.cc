// Bytes of a peer: messages with tensors, against the generated parser, and handover packets.
#include <sys/socket.h>

#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/shm/packet.h"
#include "common/wire/message_splitter.h"
#include "proto/ps.pb.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {
namespace {

// The first byte says how long the pieces are in which a message comes.
void SplitsMessages(absl::string_view input) {
  if (input.empty()) return;
  const size_t length = static_cast<unsigned char>(input[0]) + 1;
  const absl::string_view message = input.substr(1);
  std::vector<wire::Bytes> pieces;
  for (size_t begin = 0; begin < message.size(); begin += length) {
    const absl::string_view piece = message.substr(begin, length);
    pieces.push_back({reinterpret_cast<const std::byte*>(piece.data()), piece.size()});
  }
  const absl::StatusOr<wire::SplitMessage> split = wire::Split(pieces);
  CheckMessage(split.status());
  PushRequest whole;
  const bool is_message = whole.ParseFromArray(message.data(), static_cast<int>(message.size()));
  if (!split.ok()) return LOCKSTEP_CHECK(!is_message);
  PushRequest header;
  LOCKSTEP_CHECK(header.ParseFromString(split->header) == is_message);
  if (!is_message) return;
  std::string payload;
  for (const wire::Bytes& bytes : split->payload) {
    payload.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  LOCKSTEP_CHECK(payload == whole.payload());
  header.set_payload(payload);
  LOCKSTEP_CHECK(header.SerializeAsString() == whole.SerializeAsString());
}

void ReceivesPackets(absl::string_view input) {
  int ends[2];
  LOCKSTEP_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends) == 0);
  const FileDescriptor from(ends[0]);
  const FileDescriptor to(ends[1]);
  if (send(from.get(), input.data(), input.size(), MSG_NOSIGNAL) < 0) return;
  const absl::StatusOr<shm::Packet> packet = shm::ReceivePacket(to);
  CheckMessage(packet.status());
  if (packet.ok()) LOCKSTEP_CHECK(packet->bytes == input);
}

const Target kSplitter("splitter", SplitsMessages);
const Target kPackets("packets", ReceivesPackets);

}  // namespace
}  // namespace lockstep::fuzz
