#include "chief/cluster/job_ps.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/chief/support/scripted_ps.h"

namespace lockstep::chief {
namespace {

// Cancels what is under way when it is destroyed, as a connection does.
class Connection final : public PsControl {
 public:
  explicit Connection(ScriptedPs* ps) : ps_(ps) {}
  ~Connection() override {
    while (ps_->get_view.size() > 0) ps_->get_view.Answer(absl::CancelledError("cancelled"));
  }
  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    ps_->Start(method, request, reply, std::move(done));
  }

 private:
  ScriptedPs* const ps_;
};

struct Fixture {
  std::shared_ptr<std::optional<absl::StatusOr<SetViewReply>>> GetView(size_t index) {
    auto got = std::make_shared<std::optional<absl::StatusOr<SetViewReply>>>();
    ps.all()[index]->Call(kGetView, GetViewRequest(),
                          [got](absl::StatusOr<SetViewReply> reply) { *got = std::move(reply); });
    return got;
  }

  std::map<std::string, ScriptedPs> servers;  // by address
  std::vector<std::string> connected;         // "ps 1 at b:1"
  std::shared_ptr<KnownClusterSpecs> clusters = std::make_shared<KnownClusterSpecs>("first");
  JobPs ps{[this](const std::string& name, const std::string& address) {
             connected.push_back(name + " at " + address);
             return std::make_unique<Connection>(&servers[address]);
           },
           {"a:1", "b:1"},
           clusters};
};

TEST_CASE("a ps that has moved is called at its new address, the others where they are") {
  Fixture f;
  const auto stays = f.GetView(0);
  const auto moves = f.GetView(1);
  f.ps.SetAddresses({"a:1", "c:1"});
  CHECK(f.connected == std::vector<std::string>{"ps 0 at a:1", "ps 1 at b:1", "ps 1 at c:1"});
  // It is to be made again: nobody has cancelled it.
  REQUIRE(moves->has_value());
  CHECK(absl::IsUnavailable((*moves)->status()));
  CHECK_FALSE(stays->has_value());
  const auto again = f.GetView(1);
  f.servers["c:1"].get_view.Answer(WithVariables(7));
  REQUIRE(again->has_value());
  CHECK((*again)->value().shard_step() == 7);
  f.servers["a:1"].get_view.Answer(absl::AbortedError("an older term"));
  CHECK(absl::IsAborted((*stays)->status()));
}

TEST_CASE("a call to a copy whose connection is given up is to be made again") {
  Fixture f;
  auto copy = f.ps.ConnectCopy(0, "b:9");
  absl::Status ended;
  copy->Call(kGetView, GetViewRequest(),
             [&](const absl::StatusOr<SetViewReply>& reply) { ended = reply.status(); });
  copy.reset();
  CHECK(absl::IsUnavailable(ended));
}

TEST_CASE("each SetView has the cluster specs as of then, also to a copy") {
  Fixture f;
  const auto copy = f.ps.ConnectCopy(0, "b:9");
  CHECK(f.connected.back() == "the copy of ps 0 at b:9");
  SetViewRequest view;
  view.set_epoch(3);
  const auto tell = [&](PsControl& ps) {
    ps.Call(kSetView, view, [](const absl::StatusOr<SetViewReply>&) {});
  };
  tell(*f.ps.all()[0]);
  f.clusters->Add("second");
  tell(*f.ps.all()[0]);
  tell(*copy);
  const auto& told = f.servers["a:1"].set_view.all();
  REQUIRE(told.size() == 2);
  CHECK(told[0].epoch() == 3);
  CHECK(told[0].cluster() == "first");
  CHECK(told[0].earlier_clusters_size() == 0);
  const SetViewRequest& of_copy = f.servers["b:9"].set_view.front();
  for (const SetViewRequest* request : {&told[1], &of_copy}) {
    CHECK(request->cluster() == "second");
    REQUIRE(request->earlier_clusters_size() == 1);
    CHECK(request->earlier_clusters(0) == "first");
  }
}

TEST_CASE("a chief that stands by tells its cluster specs, too") {
  Fixture f;
  f.clusters->Add("second");
  f.ps.all()[0]->Call(kWatchCommand, WatchCommandRequest(),
                      [](const absl::StatusOr<WatchCommandReply>&) {});
  const WatchCommandRequest& told = f.servers["a:1"].watches.front();
  CHECK(told.cluster() == "second");
  REQUIRE(told.earlier_clusters_size() == 1);
  CHECK(told.earlier_clusters(0) == "first");
}

}  // namespace
}  // namespace lockstep::chief
