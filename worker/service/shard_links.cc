#include "worker/service/shard_links.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/contact/ps_ping.h"

namespace lockstep::worker {
namespace {

PingRequest PingOf(const WorkerIdentity& worker, uint32_t lease_ms) {
  PingRequest request;
  *request.mutable_worker() = worker;
  request.set_lease_ms(lease_ms);
  return request;
}

}  // namespace

ShardLinks::ShardLinks(ShardLinksOptions options, const RegisterTaskReply& registration,
                       const SharedMemory* memory, Timer* timer)
    : options_(std::move(options)),
      checksums_(registration.job().transport().checksums()),
      memory_(memory),
      contacts_({.lease = absl::Milliseconds(registration.lease_ms()), .timer = timer},
                PsPings({.queue = options_.queue, .credentials = options_.credentials},
                        PingOf(options_.identity, registration.lease_ms()))) {
  const auto& places = registration.shards();
  for (size_t shard = 0; shard < options_.ps_addresses.size(); ++shard) {
    std::string address = options_.ps_addresses[shard];
    if (places.empty()) {
      owned_.push_back(Connect(shard, address));
    } else {
      const ShardPlace& place = places[static_cast<int>(shard)];
      address = place.address();
      auto transport = std::make_unique<FailoverTransport>(
          [this, shard](const std::string& at) { return Connect(shard, at); }, address,
          place.other_address());
      movable_.push_back(transport.get());
      owned_.push_back(std::move(transport));
    }
    transports_.push_back(owned_.back().get());
    contacts_.SetPlace(shard, NameOf(shard, address), address);
  }
}

void ShardLinks::SetPlaces(const google::protobuf::RepeatedPtrField<ShardPlace>& places) {
  const size_t told = std::min(movable_.size(), static_cast<size_t>(places.size()));
  for (size_t shard = 0; shard < told; ++shard) {
    const ShardPlace& place = places[static_cast<int>(shard)];
    movable_[shard]->SetPlaces(place.address(), place.other_address());
    contacts_.SetPlace(shard, NameOf(shard, place.address()), place.address());
  }
}

void ShardLinks::Cancel() {
  contacts_.Stop();
  for (TensorTransport* transport : transports_) transport->Cancel();
}

std::string ShardLinks::NameOf(size_t shard, const std::string& address) const {
  const std::string home =
      options_.home_of != nullptr ? options_.home_of(shard) : options_.ps_addresses[shard];
  return absl::StrCat(address == home ? "" : "the copy of ", "ps ", shard);
}

std::unique_ptr<TensorTransport> ShardLinks::Connect(size_t shard,
                                                     const std::string& address) const {
  return memory_->Connect({.address = address,
                           .name = NameOf(shard, address),
                           .queue = options_.queue,
                           .credentials = options_.credentials,
                           .checksums = checksums_});
}

}  // namespace lockstep::worker
