// A ps with two variables, and clients of it, over each implementation.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/conformance/ps_under_test.h"
#include "tests/conformance/small_job.h"
#include "tests/support/await.h"

namespace lockstep {

using Values = std::unique_ptr<PulledValues>;

// A ps with variables v0 (3 elements) and v1 (1000), and clients of it.
class Ps {
 public:
  explicit Ps(bool bring_up = true) {
    const PsImplementation implementation = GENERATE(from_range(AllPs()));
    INFO(implementation.name);
    ps_ = implementation.make();
    control_ = ps_->NewControl();
    data_ = ps_->NewData();
    if (!bring_up) return;
    REQUIRE(SetView(TwoWorkers()).ok());
    REQUIRE(Create(Variables({3, 1000})).ok());
  }

  absl::StatusOr<SetViewReply> GetView() {
    return CallAndWait(*control_, kGetView, GetViewRequest());
  }
  absl::StatusOr<SetViewReply> SetView(const SetViewRequest& view) {
    return CallAndWait(*control_, kSetView, view);
  }
  absl::StatusOr<CreateVariablesReply> Create(const CreateVariablesRequest& request) {
    return CallAndWait(*control_, kCreateVariables, request);
  }
  absl::StatusOr<PushReply> Push(const PushRequest& push, const std::vector<float>& values) {
    return Await<PushReply>(
        [&](auto done) { data_->Push(push, {BytesOf(values)}, std::move(done)); });
  }
  // All of `values` as the gradient of `variable`.
  absl::StatusOr<PushReply> Push(uint32_t worker, int64_t step, uint32_t variable,
                                 const std::vector<float>& values) {
    const auto size = static_cast<int64_t>(values.size());
    return Push(PushOf(worker, step, variable, size, 0, size), values);
  }
  absl::StatusOr<Values> Pull(const PullRequest& pull) {
    return Await<Values>([&](auto done) { data_->Pull(pull, std::move(done)); });
  }
  std::vector<float> PullV0(int64_t version) {
    const absl::StatusOr<Values> values = Pull(PullOf(0, version, 0));
    REQUIRE(values.ok());
    CHECK((*values)->header().version() == version);
    std::vector<float> floats(3);
    const std::vector<std::span<std::byte>> targets = {std::as_writable_bytes(std::span(floats))};
    REQUIRE((*values)->CopyTo(targets).ok());
    return floats;
  }
  void CloseStep(int64_t step) {
    Answer<GrantReply> closed;
    control_->Call(kGrant, Granted(step), closed.done());
    for (uint32_t worker : {0, 1}) {
      REQUIRE(Push(worker, step, 0, {1, 2, 3}).ok());
      REQUIRE(Push(worker, step, 1, std::vector<float>(1000, 1)).ok());
    }
    REQUIRE(closed.Wait().ok());
  }
  PsControl* control() { return control_.get(); }
  PsData* data() { return data_.get(); }
  PsUnderTest* ps() { return ps_.get(); }

 private:
  std::unique_ptr<PsUnderTest> ps_;
  std::unique_ptr<PsControl> control_;
  std::unique_ptr<PsData> data_;
};

}  // namespace lockstep
