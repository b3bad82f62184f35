#include "tests/chaos/status_reader.h"

#include <catch2/catch.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/server.h"
#include "common/status/status_service.h"

namespace lockstep::test {
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

}  // namespace
}  // namespace lockstep::test
