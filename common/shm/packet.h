// Packets that hand over segments on a socket: one each way, with a few bytes and at most one
// descriptor.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/fs/file_descriptor.h"

namespace lockstep::shm {

// The first byte of an answer; the reason follows kRefused.
inline constexpr char kAgreed[] = "+";
inline constexpr char kRefused[] = "-";

struct Packet {
  std::string bytes;
  FileDescriptor descriptor;  // null: none came
};

// Makes a socket for packets.
absl::StatusOr<FileDescriptor> PacketSocket();
// Its address is an abstract name: nothing of it is on any disk.
absl::Status BindTo(const FileDescriptor& socket, absl::string_view name);
absl::Status ConnectTo(const FileDescriptor& socket, absl::string_view name);
// PERMISSION_DENIED: the process at the other end belongs to another user.
absl::Status CheckPeer(const FileDescriptor& socket);

// `descriptor` may be null. Neither this nor ReceivePacket blocks.
absl::Status SendPacket(const FileDescriptor& socket, absl::string_view bytes,
                        const FileDescriptor& descriptor);
// UNAVAILABLE: the peer has hung up, or nothing is there. INVALID_ARGUMENT: it brought more than
// one descriptor, or more than a packet's bytes; none of them stays open.
absl::StatusOr<Packet> ReceivePacket(const FileDescriptor& socket);
// DEADLINE_EXCEEDED: nothing came.
absl::Status AwaitPacket(const FileDescriptor& socket, absl::Duration patience);

}  // namespace lockstep::shm
