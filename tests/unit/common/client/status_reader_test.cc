#include "common/client/status_reader.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fs/file_descriptor.h"
#include "common/rpc/server.h"
#include "common/status/status_service.h"

namespace lockstep {
namespace {

constexpr absl::Duration kWhole = absl::Seconds(10);

// A process at `address`, in step `step`.
class StepServer {
 public:
  StepServer(const std::string& address, int64_t step)
      : service_(MakeStatusService({.role = "ps"}, [step](Callback<ProcessStatus> respond) {
          ProcessStatus status;
          status.set_global_step(step);
          respond(std::move(status));
        })) {
    auto server =
        Server::Start({.address = address, .owner = "ps 0", .services = {service_.get()}});
    REQUIRE(server.ok());
    server_ = *std::move(server);
  }
  ~StepServer() { server_->Shutdown(absl::ZeroDuration()); }
  std::string address() const { return absl::StrCat("127.0.0.1:", server_->port()); }

 private:
  std::unique_ptr<rpc::Service> service_;
  std::unique_ptr<Server> server_;
};

TEST_CASE("a process that is started again at its address is read without a back-off") {
  std::optional<StepServer> process(std::in_place, "127.0.0.1:0", 1);
  const std::string address = process->address();
  StatusReader reader(address);
  for (int i = 0; i < 2; ++i) {
    const auto status = reader.Read(kWhole);
    INFO(status.status().ToString());
    REQUIRE(status.ok());
    CHECK(status->global_step() == 1);
  }
  process.reset();
  for (int i = 0; i < 5; ++i) CHECK_FALSE(reader.Read(kWhole).ok());
  process.emplace(address, 2);
  const auto status = reader.Read(kWhole);
  REQUIRE(status.ok());
  CHECK(status->global_step() == 2);
}

int64_t Descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// As that of a process that is stopped: the kernel accepts connections for it.
class SilentPort {
 public:
  SilentPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(socket_.get(), name, size) == 0);
    REQUIRE(::listen(socket_.get(), SOMAXCONN) == 0);
    REQUIRE(::getsockname(socket_.get(), name, &size) == 0);
    port_ = ntohs(address.sin_port);
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  const FileDescriptor socket_;
  int port_ = 0;
};

TEST_CASE("a process that does not answer is asked over the same connection") {
  const SilentPort process;
  StatusReader reader(process.address());
  int64_t at_first = 0;
  for (int i = 0; i < 20; ++i) {
    CHECK_FALSE(reader.Read(absl::Milliseconds(50)).ok());
    if (i == 5) at_first = Descriptors();
  }
  CHECK(Descriptors() <= at_first);
}

}  // namespace
}  // namespace lockstep
