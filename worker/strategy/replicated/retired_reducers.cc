#include "worker/strategy/replicated/retired_reducers.h"

#include <utility>

namespace lockstep::worker {

RetiredReducers::RetiredReducers() : thread_([this] { Destroy(); }) {}

RetiredReducers::~RetiredReducers() {
  {
    absl::MutexLock lock(&mutex_);
    is_closed_ = true;
  }
  thread_.join();
}

void RetiredReducers::Add(std::shared_ptr<GroupReducer> reducer) {
  absl::MutexLock lock(&mutex_);
  reducers_.push_back(std::move(reducer));
}

void RetiredReducers::Destroy() {
  while (true) {
    std::vector<std::shared_ptr<GroupReducer>> reducers;  // destroyed without the lock
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &RetiredReducers::HasNews));
    if (reducers_.empty()) return;
    reducers.swap(reducers_);
  }
}

}  // namespace lockstep::worker
