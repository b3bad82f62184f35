#include "common/config/cluster_spec.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

ClusterSpec Spec() { return {{"a:1", "b:2"}, {"w0:1", "w1:2", "w2:3"}, "c:9"}; }

std::string ErrorOf(ClusterSpec spec) {
  const absl::Status status = ValidateCluster(&spec);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST_CASE("The canonical text has one line per task and ignores how addresses are spelt") {
  ClusterSpec spec = Spec();
  spec.ps[1] = "B:02";
  REQUIRE(ValidateCluster(&spec).ok());
  CHECK(spec.Canonical() ==
        "chief c:9\nps 0 a:1\nps 1 b:2\nworker 0 w0:1\nworker 1 w1:2\nworker 2 w2:3\n");
  CHECK(spec.AddressOf(Role::kWorker, 2) == "w2:3");
  CHECK(spec.AddressOf(Role::kChief, 0) == "c:9");
  CHECK(spec.Count(Role::kPs) == 2);
}

TEST_CASE("Every role must be there") {
  ClusterSpec spec = Spec();
  spec.ps.clear();
  CHECK_THAT(ErrorOf(spec), Contains("there is no ps"));
  spec = Spec();
  spec.workers.clear();
  CHECK_THAT(ErrorOf(spec), Contains("there is no worker"));
  spec = Spec();
  spec.chief.clear();
  CHECK_THAT(ErrorOf(spec),
             Contains("there is no chief. Remedy: name one, \"chief\": [\"host:port\"]"));
}

TEST_CASE("Two tasks with one address are both named") {
  ClusterSpec spec = Spec();
  spec.workers[1] = "A:1";
  CHECK_THAT(ErrorOf(spec), Contains("ps 0 and worker 1 have the same address a:1"));
  spec = Spec();
  spec.chief = "w2:3";
  CHECK_THAT(ErrorOf(spec), Contains("chief and worker 2 have the same address"));
}

TEST_CASE("A bad address is named by its task") {
  ClusterSpec spec = Spec();
  spec.workers[2] = "w2";
  CHECK_THAT(ErrorOf(spec), Contains("worker 2: expected \"host:port\", got \"w2\""));
}

TEST_CASE("The difference between two clusters names the entries") {
  const std::string a = Spec().Canonical();
  CHECK(DescribeDifference(a, a).empty());
  ClusterSpec other = Spec();
  other.workers[1] = "x:2";
  CHECK(DescribeDifference(a, other.Canonical(), "the chief's", "worker 0's") ==
        "worker 1 is w1:2 in the chief's and x:2 in worker 0's");
  other = Spec();
  other.ps.pop_back();
  other.workers.push_back("y:4");
  CHECK(DescribeDifference(a, other.Canonical()) ==
        "ps 1 (b:2) is only in ours; worker 3 (y:4) is only in theirs");
  other = {{"p:1"}, {"q:1", "r:1", "s:1"}, "t:1"};
  CHECK_THAT(DescribeDifference(a, other.Canonical()), Contains("; and 3 more"));
}

TEST_CASE("The difference from a hostile text is short and printable") {
  const std::string a = Spec().Canonical();
  for (const std::string& hostile :
       {std::string(), std::string("\n\n"), std::string(100000, 'x'), std::string("ps 0\r\x1b[2J"),
        std::string(5000, ' '), a + a, std::string("ps 0 \0", 6)}) {
    const std::string text = DescribeDifference(a, hostile);
    CHECK_FALSE(text.empty());
    CHECK(text.size() < 3000);
    for (char c : text) CHECK((c >= ' ' && c != 127));
  }
}

TEST_CASE("The difference from a much longer text costs no more than from one a little longer") {
  const std::string a = Spec().Canonical();
  const auto lines = [](size_t bytes) {
    std::string text;
    for (int i = 0; text.size() < bytes; ++i) absl::StrAppend(&text, "worker ", i, " h:", i, "\n");
    return text;
  };
  const auto fastest = [&](const std::string& theirs) {
    absl::Duration best = absl::InfiniteDuration();
    for (int i = 0; i < 5; ++i) {
      const absl::Duration before = Clock::Real()->Monotonic();
      CHECK_FALSE(DescribeDifference(a, theirs).empty());
      best = std::min(best, Clock::Real()->Monotonic() - before);
    }
    return best;
  };
  // 64 times the bytes.
  CHECK(fastest(lines(11 << 20)) < 8 * fastest(lines(176 << 10)));
}

TEST_CASE("The difference from a longer text names what differs, not what was left unread") {
  ClusterSpec other = Spec();
  other.ps[1] = "x:9";
  std::string longer = other.Canonical();
  while (longer.size() < 1 << 20) absl::StrAppend(&longer, "worker ", longer.size(), " h:1\n");
  CHECK_THAT(DescribeDifference(Spec().Canonical(), longer), Contains("ps 1 is b:2 in ours"));
  CHECK_THAT(DescribeDifference(Spec().Canonical(), std::string(1 << 20, '\n')),
             Contains("the text of theirs is too long"));
}

TEST_CASE("a chief's address is found in a canonical text") {
  const std::string text = "chief a:1\nchief 1 b:1\nchief 11 c:1\nps 1 a:2\n";
  CHECK(ChiefAddressIn(text, 0) == "a:1");
  CHECK(ChiefAddressIn(text, 1) == "b:1");
  CHECK(ChiefAddressIn(text, 11) == "c:1");
  CHECK_FALSE(ChiefAddressIn(text, 2).has_value());
  CHECK_FALSE(ChiefAddressIn("chief 1 b:1\n", 0).has_value());
}

TEST_CASE("a worker's address is found in a canonical text") {
  const std::string text = "chief a:1\nps 1 a:2\nworker 1 b:1\nworker 11 c:1\nworker 2 \x01\n";
  CHECK(WorkerAddressIn(text, 1) == "b:1");
  CHECK(WorkerAddressIn(text, 11) == "c:1");
  CHECK(WorkerAddressIn(text, 2) == "\\x01");
  CHECK_FALSE(WorkerAddressIn(text, 0).has_value());
  CHECK_FALSE(WorkerAddressIn("", 0).has_value());
}

}  // namespace
}  // namespace lockstep
