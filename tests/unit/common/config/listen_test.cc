#include "common/config/listen.h"

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"

namespace lockstep {
namespace {

TEST_CASE("Without --listen a process listens on its address in the cluster spec") {
  CHECK(*ListenAddress("", "node1:2222") == "node1:2222");
}

TEST_CASE("--listen names the address to listen on") {
  CHECK(*ListenAddress("0.0.0.0:2222", "node1:80") == "0.0.0.0:2222");
  CHECK(*ListenAddress("[::]:2222", "node1:80") == "[::]:2222");
}

TEST_CASE("A --listen without host or port is a mistake on the command line") {
  for (const char* flag : {"2222", ":2222", "node1", "node1:0", "node1:http"}) {
    const absl::Status status = ListenAddress(flag, "node1:2222").status();
    CHECK(ExitCodeFor(status) == ExitCode::kUsage);
    const size_t remedy = status.message().find("Remedy: ");
    CHECK(status.message().substr(remedy) == "Remedy: --listen=HOST:PORT, such as 0.0.0.0:2222");
  }
}

}  // namespace
}  // namespace lockstep
