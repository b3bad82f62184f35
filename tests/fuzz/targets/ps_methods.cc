// Every method of a ps, through its server. What is checked in begins with a sound job.
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "proto/ps.grpc.pb.h"
#include "ps/service/ps_server.h"
#include "tests/fuzz/service_calls.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::fuzz {
namespace {

constexpr uint64_t kMemory = uint64_t{64} << 20;

// A ps writes where its chief says: here only into a folder that goes.
void KeepInside(const std::string& folder, std::vector<ServiceCall>* calls) {
  for (ServiceCall& call : *calls) {
    SaveRequest save;
    if (call.method != "Save" || !save.ParseFromString(call.message)) continue;
    save.set_folder(folder + "/ckpt-1");
    call.message = save.SerializeAsString();
  }
}

void CallsPs(absl::string_view input) {
  const test::TemporaryFolder folder;
  std::vector<ServiceCall> calls = CallsOf({ParameterServer::service_full_name()}, input);
  KeepInside(folder.path(), &calls);
  ps::MemoryClaims memory([] { return kMemory; });
  ps::Shard shard({.held_bytes_budget = kMemory, .memory = &memory});
  const auto server = ps::PsServer::Start(
      &shard, {.address = "127.0.0.1:0",
               .identity = {.task_index = 0,
                            .clusters = std::make_shared<KnownClusterSpecs>("c"),
                            .incarnation = Incarnation(3)},
               .events = {.called_by_chief = [] {},
                          .asked_by_chief = [] {},
                          .work_begins = [] {},
                          .work_ends = [] {},
                          .created = [] {},
                          .finished = [](const ps::JobEnd&) {}}});
  LOCKSTEP_CHECK(server.ok());
  MakeCalls(absl::StrCat("127.0.0.1:", (*server)->port()), calls);
}

const Target kPsMethods("ps_methods", CallsPs);

}  // namespace
}  // namespace lockstep::fuzz
