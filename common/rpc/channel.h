// Channels to other tasks, all with the same keepalive, limits and reconnection.
#pragma once

#include <memory>
#include <string>

namespace grpc {
class Channel;
class ChannelCredentials;
}  // namespace grpc

namespace lockstep::rpc {

// Its own connection, made by the first call and made again whenever it is lost. Proxies that the
// environment names are not used: tasks of a job talk to each other directly.
std::shared_ptr<grpc::Channel> MakeChannelWith(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

}  // namespace lockstep::rpc
