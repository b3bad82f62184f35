// The answer that a call waits for: given once, or UNAVAILABLE when it is destroyed without.
#pragma once

#include <utility>

#include "common/base/callback.h"
#include "common/base/chief_stopping.h"

namespace lockstep::chief {

template <typename Reply>
class Answer {
 public:
  explicit Answer(Callback<Reply> give) : give_(std::move(give)) {}
  Answer(Answer&& other) noexcept : give_(std::exchange(other.give_, nullptr)) {}
  Answer& operator=(Answer&& other) noexcept {
    std::swap(give_, other.give_);
    return *this;
  }
  ~Answer() {
    if (give_ != nullptr) give_(ChiefStoppingError());
  }

  void operator()(absl::StatusOr<Reply> reply) { std::exchange(give_, nullptr)(std::move(reply)); }

 private:
  Callback<Reply> give_;
};

}  // namespace lockstep::chief
