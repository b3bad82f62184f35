#include "common/shm/fd_passing_client.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/shm/packet.h"

namespace lockstep::shm {

absl::StatusOr<std::shared_ptr<const Segment>> ShareMemory(const std::string& socket,
                                                           uint64_t secret, const Segment* ours,
                                                           absl::Duration patience) {
  LOCKSTEP_ASSIGN_OR_RETURN(const FileDescriptor server, PacketSocket());
  LOCKSTEP_RETURN_IF_ERROR(ConnectTo(server, socket));
  LOCKSTEP_RETURN_IF_ERROR(CheckPeer(server));
  const FileDescriptor none;
  const absl::string_view said(reinterpret_cast<const char*>(&secret), sizeof secret);
  LOCKSTEP_RETURN_IF_ERROR(SendPacket(server, said, ours == nullptr ? none : ours->descriptor()));
  LOCKSTEP_RETURN_IF_ERROR(AwaitPacket(server, patience));
  const absl::StatusOr<Packet> answer = ReceivePacket(server);
  if (!answer.ok()) return answer.status();
  if (answer->bytes != kAgreed) {
    return absl::PermissionDeniedError(absl::StrCat(
        "handing over shared memory: ",
        absl::StartsWith(answer->bytes, kRefused) ? answer->bytes.substr(1) : "refused"));
  }
  if (!answer->descriptor.valid()) return nullptr;
  return Segment::Map(answer->descriptor);
}

}  // namespace lockstep::shm
