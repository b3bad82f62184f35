#include "ps/copy/copy_senders.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/alarm_timer.h"
#include "common/transport/grpc/grpc_transport.h"

namespace lockstep::ps {

std::shared_ptr<CopyTarget> CopySenders::Make(const CopyTargetOptions& options) {
  absl::MutexLock lock(&mutex_);
  if (queue_ == nullptr) queue_ = std::make_unique<rpc::EventQueue>();
  auto transport = std::make_unique<GrpcTransport>(
      ClientOptions{.address = options.address,
                    .name = absl::StrCat("the copy of ps ", options.shard.value()),
                    .queue = queue_.get(),
                    .credentials = credentials_});
  senders_.push_back(std::make_shared<CopySender>(options, std::move(transport),
                                                  std::make_unique<rpc::AlarmTimer>(queue_.get()),
                                                  Clock::Real()));
  return senders_.back();
}

void CopySenders::Close() {
  std::vector<std::shared_ptr<CopySender>> senders;
  {
    absl::MutexLock lock(&mutex_);
    senders = senders_;
  }
  for (const auto& sender : senders) sender->Close();
}

}  // namespace lockstep::ps
