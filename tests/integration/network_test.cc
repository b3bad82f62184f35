// Jobs whose processes reach one another through a proxy that misbehaves.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "deploy/cli/ports.h"
#include "tests/integration/cluster.h"
#include "tests/integration/new_output.h"
#include "tests/support/fault_proxy.h"

namespace lockstep::test {
namespace {

constexpr int kForeverSteps = 1'000'000;
constexpr absl::Duration kWhole = absl::Minutes(1);

// One ps and two workers, all of which a step needs; the ps or the chief is behind a proxy.
struct Job {
  Job(bool ps_is_behind, const std::string& more)
      : cluster(1, 2),
        real(deploy::PortReservation::Take(1).value()),
        proxy(ps_is_behind ? cluster.spec().ps[0] : cluster.spec().chief, real.addresses()[0]) {
    const std::string listen = "--listen=" + real.addresses()[0];
    const std::string job =
        cluster.WriteJob({.max_steps = kForeverSteps,
                          .more = absl::StrCat("transport { shared_memory: OFF }", more)});
    const auto start = [&](std::vector<std::string> command, bool is_behind) {
      if (is_behind) command.push_back(listen);
      return std::make_unique<Process>(std::move(command));
    };
    ps = start(cluster.Ps(0), ps_is_behind);
    for (int i = 0; i < 2; ++i) workers.push_back(start(cluster.Worker(i), false));
    std::vector<std::string> command = cluster.Chief(job);
    command.push_back("--lease=2");
    chief = start(std::move(command), !ps_is_behind);
    chief_address = ps_is_behind ? cluster.spec().chief : real.addresses()[0];
    REQUIRE(WaitForStep(5));
  }

  int64_t Step() const {
    const auto status = FetchStatus(chief_address, absl::Seconds(5));
    return status.ok() ? status->global_step() : -1;
  }
  // Beyond `step`.
  bool WaitForStep(int64_t step) const {
    const absl::Time deadline = absl::Now() + kWhole;
    while (Step() <= step) {
      if (absl::Now() > deadline || !chief->running()) return false;
    }
    return true;
  }
  bool GoesOn() const { return WaitForStep(Step() + 5); }
  // Of the ps.
  std::vector<NewOutput> Callers() const {
    return {NewOutput(chief.get()), NewOutput(workers[0].get()), NewOutput(workers[1].get())};
  }
  bool AllRun() const {
    return ps->running() && chief->running() && workers[0]->running() && workers[1]->running();
  }
  std::string Logs() const {
    return absl::StrCat("chief:\n", chief->Output(), "ps:\n", ps->Output(), "worker 0:\n",
                        workers[0]->Output(), "worker 1:\n", workers[1]->Output());
  }

  Cluster cluster;
  const deploy::PortReservation real;
  FaultProxy proxy;
  std::unique_ptr<Process> ps;
  std::vector<std::unique_ptr<Process>> workers;
  std::unique_ptr<Process> chief;
  std::string chief_address;
};

TEST_CASE("connections that are reset again and again cost time and no process") {
  Job job(/*ps_is_behind=*/true, "");
  for (int round = 0; round < 10; ++round) {
    const int64_t step = job.Step();
    job.proxy.CutConnections();
    REQUIRE(job.WaitForStep(step + 1));
  }
  INFO(job.Logs());
  CHECK(job.GoesOn());
  CHECK(job.AllRun());
}

// What is lost on the way to the one behind the proxy, and back. Nobody is told: keepalive ends the
// calls after 15 s.
struct Cut {
  bool requests;
  bool replies;

  void Apply(FaultProxy* proxy) const {
    proxy->StopRequests(requests);
    proxy->StopReplies(replies);
  }
};

// The processes say themselves how long it took: "for 2 s" is less than a lease of 2 s and 1 s. A
// machine at work may take longer to run them, which they do not count.
TEST_CASE("a ps and those that call it name each other when one of them is not heard") {
  const Cut cut = GENERATE(Cut{true, true}, Cut{true, false});
  CAPTURE(cut.requests, cut.replies);
  Job job(/*ps_is_behind=*/true, "");
  // A ps can miss a caller from its first ping on. An answer to one, after a cut, shows that it has
  // come.
  const std::vector<NewOutput> first_cut = job.Callers();
  job.proxy.StopAll(true);
  REQUIRE(WaitForAll(first_cut, "no contact with ps 0 for 2 s"));
  job.proxy.StopAll(false);
  REQUIRE(WaitForAll(first_cut, "contact with ps 0 again"));

  const std::vector<NewOutput> ps = {NewOutput(job.ps.get())};
  const std::vector<NewOutput> callers = job.Callers();
  const auto ps_says = [&ps](const std::string& before, const std::string& after) {
    return std::ranges::all_of(std::vector{"chief 0", "worker 0", "worker 1"},
                               [&](const std::string& caller) {
                                 return WaitForAll(ps, absl::StrCat(before, caller, after));
                               });
  };
  cut.Apply(&job.proxy);
  const bool callers_miss_it = WaitForAll(callers, "no contact with ps 0 for 2 s");
  const bool it_misses_callers = ps_says("no contact with ", " for 2 s");
  job.proxy.StopAll(false);
  const bool callers_have_it = WaitForAll(callers, "contact with ps 0 again");
  const bool it_has_callers = ps_says("contact with ", " again");
  INFO(job.Logs());
  CHECK(callers_miss_it);
  CHECK(it_misses_callers);
  CHECK(callers_have_it);
  CHECK(it_has_callers);
  CHECK(job.GoesOn());
  CHECK(job.AllRun());
}

// The proxy passes the pings on, so that the ps misses nobody until keepalive ends the connections.
TEST_CASE("a ps that has become mute is named after a lease, and the job goes on when it speaks") {
  Job job(/*ps_is_behind=*/true, "");
  const std::vector<NewOutput> callers = job.Callers();
  Cut{.requests = false, .replies = true}.Apply(&job.proxy);
  CHECK(WaitForAll(callers, "no contact with ps 0 for 2 s"));
  job.proxy.StopAll(false);
  CHECK(WaitForAll(callers, "contact with ps 0 again"));
  INFO(job.Logs());
  CHECK(job.GoesOn());
  CHECK(job.AllRun());
}

TEST_CASE("workers and a chief name each other when one is not heard, and workers register again") {
  const Cut cut = GENERATE(Cut{true, true}, Cut{true, false}, Cut{false, true});
  CAPTURE(cut.requests, cut.replies);
  Job job(/*ps_is_behind=*/false, "");
  const std::vector<NewOutput> chief = {NewOutput(job.chief.get())};
  const std::vector<NewOutput> workers = {NewOutput(job.workers[0].get()),
                                          NewOutput(job.workers[1].get())};
  const std::string contact = "contact with the chief (" + job.cluster.spec().chief + ")";
  cut.Apply(&job.proxy);
  // It takes their membership away, by a way that is not cut.
  bool chief_misses_them = true;
  for (int i = 0; i < 2; ++i) {
    const std::string name = absl::StrCat("worker ", i, " (", job.cluster.spec().workers[i], ")");
    chief_misses_them &= WaitForAll(chief, name + " is lost: silent for 2.");
  }
  const bool all_miss_it = WaitForAll(workers, "no " + contact + " for 2 s");
  job.proxy.StopAll(false);
  // Where answers came all the time, a worker may register before it says so.
  const bool all_have_it = !cut.replies || WaitForAll(workers, contact + " again");
  const bool all_register = WaitForAll(workers, "joined job");
  INFO(job.Logs());
  CHECK(chief_misses_them);
  CHECK(all_miss_it);
  CHECK(all_have_it);
  CHECK(all_register);
  CHECK(job.GoesOn());
  CHECK(job.AllRun());
}

TEST_CASE("a worker that stood still for longer than its lease registers again when it goes on") {
  Job job(/*ps_is_behind=*/false, "");
  const std::vector<NewOutput> chief = {NewOutput(job.chief.get())};
  job.workers[1]->Signal(SIGSTOP);
  CHECK(WaitForAll(chief, "is lost: silent for 2."));
  const int64_t step = job.Step();
  job.workers[1]->Signal(SIGCONT);
  const absl::Time begin = absl::Now();
  const bool goes_on = job.WaitForStep(step);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  INFO(job.Logs());
  CHECK(goes_on);
  CHECK(seconds < 10);  // 3 on a machine that does nothing else
  CHECK(job.AllRun());
}

TEST_CASE("a link of 1 Mbit/s carries each step to its end") {
  Job job(/*ps_is_behind=*/true, "");
  const int64_t before = job.proxy.num_bytes();
  const int64_t step = job.Step();
  job.proxy.SetBytesPerSecond(125'000);
  INFO(job.Logs());
  CHECK(job.WaitForStep(step + 5));
  job.proxy.SetBytesPerSecond(0);
  CHECK_THAT(job.Logs(), !Catch::Contains("no contact with ps"));
  CHECK(job.proxy.num_bytes() > before);
  CHECK(job.GoesOn());
  CHECK(job.AllRun());
}

TEST_CASE("a link of 50 ms, 20 more or less, costs each step its way there and back") {
  Job job(/*ps_is_behind=*/true, "");
  job.proxy.SetLatency(absl::Milliseconds(50), absl::Milliseconds(20));
  const int64_t step = job.Step();
  const absl::Time begin = absl::Now();
  const bool goes_on = job.WaitForStep(step + 10);
  const absl::Duration ten_steps = absl::Now() - begin;
  INFO(job.Logs());
  CHECK(goes_on);
  CHECK(ten_steps >= 8 * 2 * absl::Milliseconds(30));  // two may be under way
  job.proxy.SetLatency(absl::ZeroDuration(), absl::ZeroDuration());
  CHECK(job.GoesOn());
  CHECK(job.AllRun());
}

}  // namespace
}  // namespace lockstep::test
