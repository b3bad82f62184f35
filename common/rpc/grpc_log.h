// gRPC's own log lines.
#pragma once

namespace lockstep::rpc {

// Writes them to the log of this process from then on: on one line each, cut, and a few a second at
// most, because gRPC writes one for each call of a stranger that it refuses. Thread-safe.
void SendGrpcLog();

}  // namespace lockstep::rpc
