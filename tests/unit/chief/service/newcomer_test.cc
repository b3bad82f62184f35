// What the chief takes of a process that registers, and what it keeps of one that waits.
#include "chief/service/newcomer.h"

#include <google/protobuf/unknown_field_set.h>

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/version.h"

namespace lockstep::chief {
namespace {

constexpr char kSpec[] = "chief h:1\nps 0 h:2\nworker 0 h:3\nworker 1 h:4\n";

RegisterTaskRequest Registration() {
  RegisterTaskRequest request;
  request.set_worker(1);
  request.set_incarnation(10);
  request.set_version(kVersion);
  request.set_host("node");
  request.set_pid(17);
  request.set_cluster(kSpec);
  return request;
}

TEST_CASE("a process that registers tells as many earlier cluster specs as one may remember") {
  const KnownClusterSpecs clusters(kSpec);
  RegisterTaskRequest request = Registration();
  for (size_t i = 0; i < KnownClusterSpecs::kMost; ++i) request.add_earlier_clusters(kSpec);
  CHECK(CheckNewcomer(request, clusters, false).ok());
  request.add_earlier_clusters(kSpec);
  const absl::Status refused = CheckNewcomer(request, clusters, false);
  CAPTURE(refused.message());
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(absl::StrContains(
      refused.message(), "RegisterTask.earlier_clusters: expected at most 4 cluster specs, got 5"));
}

TEST_CASE("a registration that waits keeps its worker's address, and nothing long") {
  RegisterTaskRequest request = Registration();
  request.mutable_last_reply()->set_run(77);
  request.mutable_last_reply()->set_number(3);
  std::string spec = "chief h:1\nps 0 h:2\n";
  while (spec.size() < size_t{1} << 20) spec += "worker 0 h:3\n";
  request.set_cluster(absl::StrCat(spec, "worker 1 h:4\n"));
  request.add_earlier_clusters(spec);
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(1000, spec);
  request.mutable_last_reply()
      ->GetReflection()
      ->MutableUnknownFields(request.mutable_last_reply())
      ->AddLengthDelimited(1000, spec);
  const RegisterTaskRequest parked = ParkedPartOf(request);
  CHECK(parked.SpaceUsedLong() < 4096);
  RegisterTaskRequest expected = Registration();
  expected.set_cluster("worker 1 h:4\n");
  expected.mutable_last_reply()->set_run(77);
  expected.mutable_last_reply()->set_number(3);
  const bool is_expected = parked.SerializeAsString() == expected.SerializeAsString();
  CHECK(is_expected);  // long texts are not printed
}

}  // namespace
}  // namespace lockstep::chief
