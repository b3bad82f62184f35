#include "common/status/status_service.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "common/client/status_client.h"
#include "common/rpc/server.h"

namespace lockstep {
namespace {

TEST_CASE("A process tells what it is itself and what its collector adds, anew on every call") {
  int calls = 0;
  const auto service = MakeStatusService(
      {.role = "chief", .task = 0, .incarnation = 77}, [&](ProcessStatus* status) {
        status->set_state("training");
        status->set_global_step(++calls);
        status->mutable_job()->set_name("demo");
        status->set_role("worker");  // not the collector's to say
      });
  const auto server =
      Server::Start({.address = "127.0.0.1:0", .owner = "chief 0", .services = {service.get()}});
  REQUIRE(server.ok());
  const std::string address = absl::StrCat("127.0.0.1:", (*server)->port());
  double uptime = -1;
  for (int64_t step : {1, 2}) {
    const auto status = FetchStatus(address, absl::Seconds(5));
    REQUIRE(status.ok());
    CHECK(status->role() == "chief");
    CHECK(status->incarnation() == 77);
    CHECK(status->version() == kVersion);
    CHECK(status->pid() == getpid());
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    CHECK(status->host() == host);
    CHECK(status->state() == "training");
    CHECK(status->job().name() == "demo");
    CHECK(status->global_step() == step);
    CHECK(status->uptime_seconds() > uptime);
    uptime = status->uptime_seconds();
  }
}

TEST_CASE("Nobody at the address is an error that names it") {
  const auto status = FetchStatus("127.0.0.1:1", absl::Seconds(5));
  CHECK(absl::IsUnavailable(status.status()));
  CHECK(std::string(status.status().message()).find("127.0.0.1:1") != std::string::npos);
}

}  // namespace
}  // namespace lockstep
