// A name that gets another address while a channel exists. The name service is this file's: gRPC's
// own resolver would not ask getaddrinfo.
#include <dlfcn.h>
#include <grpcpp/channel.h>
#include <netdb.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/credentials.h"
#include "common/rpc/server.h"
#include "common/status/status_service.h"

namespace {

constexpr char kName[] = "moving.test";
std::atomic<const char*> address_of_name = "127.0.0.1";
const int native_resolver = setenv("GRPC_DNS_RESOLVER", "native", 1);

}  // namespace

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** result) {
  using Resolve = decltype(&getaddrinfo);
  static const auto resolve = reinterpret_cast<Resolve>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool is_ours = node != nullptr && strcmp(node, kName) == 0;
  return resolve(is_ours ? address_of_name.load() : node, service, hints, result);
}

namespace lockstep::rpc {
namespace {

struct Running {
  explicit Running(const std::string& address)
      : service(MakeStatusService({.role = "ps", .task = 0, .incarnation = 5}, nullptr)),
        server(Server::Start({.address = address, .services = {service.get()}}).value()) {}
  const std::unique_ptr<rpc::Service> service;
  const std::unique_ptr<Server> server;
};

std::chrono::system_clock::time_point In(std::chrono::seconds time) {
  return std::chrono::system_clock::now() + time;
}

TEST_CASE("a channel finds the server whose name has got another address, within seconds") {
  REQUIRE(native_resolver == 0);
  auto before = std::make_unique<Running>("127.0.0.1:0");
  const int port = before->server->port();
  const auto channel = MakeChannel(absl::StrCat(kName, ":", port));
  REQUIRE(channel->WaitForConnected(In(std::chrono::seconds(10))));
  before.reset();
  // It has looked the name up again in vain.
  while (channel->GetState(true) != GRPC_CHANNEL_TRANSIENT_FAILURE) {
    REQUIRE(channel->WaitForStateChange(channel->GetState(true), In(std::chrono::seconds(10))));
  }
  address_of_name = "127.0.0.2";
  const Running after(absl::StrCat("127.0.0.2:", port));
  CHECK(channel->WaitForConnected(In(std::chrono::seconds(10))));
}

}  // namespace
}  // namespace lockstep::rpc
