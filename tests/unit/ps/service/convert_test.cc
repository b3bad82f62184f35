// Messages, and what a ps makes of them.
#include "ps/service/convert.h"

#include <catch2/catch.hpp>

namespace lockstep::ps {
namespace {

TEST_CASE("The answer to GetView says what the step at hand waits for") {
  ShardReport report{.waiting_dequeues = 3, .open_variables = 9};
  report.state.has_variables = true;
  report.pending.push_back(
      {.name = "fc/kernel", .have = 1, .required = 2, .from = {WorkerIndex(4)}});
  const SetViewReply reply = ToViewReply(report, Incarnation(5));
  CHECK(reply.incarnation() == 5);
  CHECK(reply.progress().open_variables() == 9);
  CHECK(reply.progress().waiting_dequeues() == 3);
  REQUIRE(reply.progress().pending_size() == 1);
  CHECK(reply.progress().pending(0).name() == "fc/kernel");
  CHECK(reply.progress().pending(0).have() == 1);
  CHECK(reply.progress().pending(0).required() == 2);
  REQUIRE(reply.progress().pending(0).from_size() == 1);
  CHECK(reply.progress().pending(0).from(0) == 4);
}

TEST_CASE("A ps without variables waits for no step") {
  CHECK_FALSE(ToViewReply({.open_variables = 1}, Incarnation(5)).has_progress());
}

TEST_CASE("The answer to Save says whether a value is not finite") {
  CHECK_FALSE(ToProto(ShardFile{.is_finite = true}).has_non_finite());
  CHECK(ToProto(ShardFile{.is_finite = false}).has_non_finite());
}

TEST_CASE("A pull that is malformed costs neither the token that is asked for with it nor a push") {
  NextRequest request;
  request.set_dequeue_seq(7);
  request.mutable_pull()->set_version(3);
  REQUIRE(FromProto(request, WorkerIdentity()).pull.has_value());
  request.mutable_pull()->set_wire_type(static_cast<DataType>(99));
  const NextStepArguments next = FromProto(request, WorkerIdentity());
  CHECK(next.dequeue_seq == DequeueSeq(7));
  CHECK_FALSE(next.pull.has_value());
}

}  // namespace
}  // namespace lockstep::ps
