#include "common/status/status_service.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/version.h"
#include "common/client/status_client.h"
#include "common/rpc/server.h"

namespace lockstep {
namespace {

TEST_CASE("A process tells what it is itself and what its collector adds, anew on every call") {
  int calls = 0;
  const auto service = MakeStatusService({.role = "chief", .task = 0, .incarnation = 77},
                                         [&](Callback<ProcessStatus> respond) {
                                           ProcessStatus status;
                                           status.set_state("training");
                                           status.set_global_step(++calls);
                                           status.mutable_job()->set_name("demo");
                                           status.set_role("worker");  // not the collector's to say
                                           respond(std::move(status));
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

TEST_CASE("A process answers when it can, and passes on why it cannot") {
  Callback<ProcessStatus> later;
  absl::Notification is_asked;
  const auto service = MakeStatusService({.role = "chief", .task = 0, .incarnation = 77},
                                         [&](Callback<ProcessStatus> respond) {
                                           if (is_asked.HasBeenNotified())
                                             return respond(absl::CancelledError("stopping"));
                                           later = std::move(respond);
                                           is_asked.Notify();
                                         });
  const auto server =
      Server::Start({.address = "127.0.0.1:0", .owner = "chief 0", .services = {service.get()}});
  REQUIRE(server.ok());
  const std::string address = absl::StrCat("127.0.0.1:", (*server)->port());
  absl::StatusOr<ProcessStatus> status;
  std::thread caller([&] { status = FetchStatus(address, absl::Seconds(5)); });
  is_asked.WaitForNotification();
  later(ProcessStatus());
  caller.join();
  REQUIRE(status.ok());
  CHECK(status->incarnation() == 77);
  CHECK(absl::IsCancelled(FetchStatus(address, absl::Seconds(5)).status()));
}

TEST_CASE("Nobody at the address is an error that names it") {
  const auto status = FetchStatus("127.0.0.1:1", absl::Seconds(5));
  CHECK(absl::IsUnavailable(status.status()));
  CHECK(std::string(status.status().message()).find("127.0.0.1:1") != std::string::npos);
}

}  // namespace
}  // namespace lockstep
