// What the gradients of a session allocate once the first ones are over.
#include <catch2/catch.hpp>

#include "common/client/gradient_messages.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/fake_ps_data.h"

namespace lockstep {
namespace {

using test::AllocationsOf;

constexpr int kVariables = 100;

// Of each size: small ones that share messages, and one that is cut.
Shape ShapeOf(uint32_t variable) { return Shape({variable == 0 ? 100'000 : 100}); }

TEST_CASE("a plan allocates nothing for a gradient like those before") {
  PushPlan plan({}, GlobalStep(0), kVariables);
  PushReply reply;
  const auto push_all = [&](GlobalStep step) {
    plan.Restart(step, kVariables);
    for (uint32_t id = 0; id < kVariables; ++id) {
      const Shape shape = ShapeOf(id);
      plan.Add(
          {{.id = VariableId(id), .shape = shape, .values = {DType::kFloat32, shape, nullptr}}});
    }
    while (const auto outgoing = plan.Next(absl::ZeroDuration())) {
      reply.clear_outcomes();
      for (size_t i = 0; i < outgoing->pieces.size(); ++i) {
        reply.add_outcomes()->set_verdict(ACCEPTED);
      }
      plan.OnReply(outgoing->message, reply, absl::ZeroDuration());
    }
  };
  push_all(GlobalStep(0));
  push_all(GlobalStep(1));
  CHECK(AllocationsOf([&] { push_all(GlobalStep(2)); }).all == 0);
  REQUIRE(plan.Result().has_value());
  CHECK((*plan.Result())->accepted == kVariables);
}

TEST_CASE("the gradients of a session share one plan") {
  FakePsData ps;
  GradientMessages gradient({}, &ps);
  const Tensor values(DType::kFloat32, Shape({100}));
  int64_t accepted = 0;
  const auto add_all = [&](uint64_t number) {
    gradient.Begin(PushSeq(number), GlobalStep(static_cast<int64_t>(number)), kVariables);
    for (uint32_t id = 0; id < kVariables; ++id) {
      gradient.Add({VariableId(id), values.shape(), values.view()});
    }
  };
  const auto send_all = [&] {
    while (const std::optional<PushCall> call = gradient.Next(absl::ZeroDuration())) {
      const auto reply = std::make_shared<PushReply>();
      for (int i = 0; i < call->header->pieces_size(); ++i) {
        reply->add_outcomes()->set_verdict(ACCEPTED);
      }
      gradient.OnReply(*call, reply, absl::ZeroDuration());
    }
    const auto result = gradient.TakeResult();
    REQUIRE(result.has_value());
    accepted += (*result)->accepted;
  };
  for (const uint64_t number : {1, 2}) {
    add_all(number);
    send_all();
    CHECK(gradient.Forget());
    CHECK_FALSE(gradient.Next(absl::ZeroDuration()).has_value());
  }
  CHECK(AllocationsOf([&] { add_all(3); }).all == 0);
  send_all();
  CHECK(accepted == 3 * kVariables);
}

}  // namespace
}  // namespace lockstep
