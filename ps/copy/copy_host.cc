#include "ps/copy/copy_host.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/address.h"

namespace lockstep::ps {

CopyHost::CopyHost(ShardOptions shard, PsServerOptions serving, uint32_t num_ps, uint32_t port)
    : shard_options_(std::move(shard)), serving_(std::move(serving)), num_ps_(num_ps), port_(port) {
  shard_options_.make_value_memory = [this](uint64_t bytes) { return memory_.MakeValues(bytes); };
  serving_.memory = &memory_;
  // The chief asks again. Waiting for the name would block a thread that serves the other shard.
  serving_.name_patience = absl::ZeroDuration();
  serving_.identity.task_index = (serving_.identity.task_index + num_ps_ - 1) % num_ps_;
  shard_options_.other_place = absl::StrCat("ps ", serving_.identity.task_index);
  serving_.events.finished = [this](const JobEnd&) {
    absl::call_once(first_finish_, [this] { finished_.Notify(); });
  };
}

absl::StatusOr<uint32_t> CopyHost::Open() {
  if (num_ps_ < 2) {
    return absl::FailedPreconditionError(
        "a copy of the only ps would be lost with it. Remedy: add a ps to the cluster spec, or set "
        "sync.ps_replicas to 0");
  }
  absl::MutexLock lock(&mutex_);
  if (server_ == nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(Address address, ParseAddress(serving_.address));
    address.port = static_cast<int>(port_);
    PsServerOptions serving = serving_;
    serving.address = address.ToString();
    auto shard = std::make_unique<Shard>(shard_options_);
    absl::StatusOr<std::unique_ptr<PsServer>> server = PsServer::Start(shard.get(), serving);
    if (!server.ok()) return server.status();
    shard_ = std::move(shard);
    server_ = *std::move(server);
    served_.store(shard_.get(), std::memory_order_release);
  }
  return static_cast<uint32_t>(server_->port());
}

void CopyHost::AwaitFinish(absl::Duration patience) {
  const Shard* const shard = served_.load(std::memory_order_acquire);
  if (shard == nullptr || !shard->GetView().has_variables) return;
  finished_.WaitFor(patience);
}

ShardActivity CopyHost::Activity() const {
  const Shard* const shard = served_.load(std::memory_order_acquire);
  return shard == nullptr ? ShardActivity() : shard->Activity();
}

bool CopyHost::HoldsUnsaved() const {
  const Shard* const shard = served_.load(std::memory_order_acquire);
  return shard != nullptr && shard->GetView().holds_unsaved;
}

void CopyHost::LookForCheckpoint() const {
  Shard* const shard = served_.load(std::memory_order_acquire);
  if (shard != nullptr) shard->LookForCheckpoint();
}

void CopyHost::Leave() {
  absl::MutexLock lock(&mutex_);
  if (server_ != nullptr) server_->Leave();
}

void CopyHost::TellStandbys() {
  PsServer* server = nullptr;
  {
    // It waits: without the lock, which a chief's call of Open takes.
    absl::MutexLock lock(&mutex_);
    server = server_.get();
  }
  if (server != nullptr) server->TellStandbys();
}

void CopyHost::Shutdown(absl::Duration grace) {
  absl::MutexLock lock(&mutex_);
  if (server_ != nullptr) server_->Shutdown(grace);
}

}  // namespace lockstep::ps
