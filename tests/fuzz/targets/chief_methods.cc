// Every method of the service Chief, through its server, before the job begins and in it.
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "chief/loop/event_loop.h"
#include "chief/service/chief_service.h"
#include "common/base/check.h"
#include "common/rpc/server.h"
#include "proto/chief.grpc.pb.h"
#include "tests/fuzz/service_calls.h"
#include "tests/fuzz/target.h"
#include "tests/unit/chief/service/worker_calls_fixture.h"

namespace lockstep::fuzz {
namespace {

// The first byte says whether two workers train already. Time passes quickly: leases end.
void CallsChief(absl::string_view input) {
  if (input.empty()) return;
  chief::worker_calls_test::Fixture fixture;
  if ((input[0] & 1) != 0) fixture.Train();
  chief::EventLoop loop;
  const std::unique_ptr<rpc::Service> service =
      chief::MakeChiefService([&](WorkerIndex, Incarnation) { return &fixture.calls; }, &loop);
  auto server = Server::Start({.address = "127.0.0.1:0", .services = {service.get()}});
  LOCKSTEP_CHECK(server.ok());
  std::thread thread(
      [&] { loop.Run(absl::Milliseconds(1), [&] { fixture.Pass(absl::Milliseconds(100)); }); });
  MakeCalls(absl::StrCat("127.0.0.1:", (*server)->port()),
            CallsOf({Chief::service_full_name()}, input.substr(1)));
  loop.Quit();
  thread.join();
  server->reset();
}

const Target kChiefMethods("chief_methods", CallsChief);

}  // namespace
}  // namespace lockstep::fuzz
