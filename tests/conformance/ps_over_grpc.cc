#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "ps/service/ps_server.h"
#include "tests/conformance/ps_under_test.h"

namespace lockstep {
namespace {

class PsOverGrpc final : public PsUnderTest {
 public:
  PsOverGrpc() {
    auto server = ps::PsServer::Start(
        &shard_, {.address = "127.0.0.1:0",
                  .identity = {.clusters = std::make_shared<KnownClusterSpecs>(kTestCluster),
                               .incarnation = Incarnation(17)}});
    LOCKSTEP_CHECK(server.ok());
    server_ = *std::move(server);
  }

  std::unique_ptr<PsControl> NewControl() override { return MakePsControl(Options()); }
  std::unique_ptr<PsData> NewData() override { return MakePsData(Options()); }

 private:
  ClientOptions Options() const {
    return {.address = absl::StrCat("127.0.0.1:", server_->port()), .name = "ps 0"};
  }

  ps::Shard shard_{ps::ShardOptions{}};
  std::unique_ptr<ps::PsServer> server_;
};

}  // namespace

std::unique_ptr<PsUnderTest> MakePsOverGrpc() { return std::make_unique<PsOverGrpc>(); }

}  // namespace lockstep
