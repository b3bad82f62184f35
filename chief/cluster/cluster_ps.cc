#include "chief/cluster/cluster_ps.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep::chief {

ClusterPs::ClusterPs(Connect connect, std::string address,
                     std::shared_ptr<const KnownClusterSpecs> clusters)
    : connect_(std::move(connect)),
      clusters_(std::move(clusters)),
      address_(std::move(address)),
      connection_(ConnectTo(address_)) {}

ClusterPs::Connection ClusterPs::ConnectTo(const std::string& address) const {
  return {std::make_shared<std::atomic<bool>>(false), connect_(address)};
}

void ClusterPs::SetAddress(const std::string& address) {
  if (address == address_) return;
  address_ = address;
  const Connection left = std::exchange(connection_, ConnectTo(address));
  left.is_left->store(true);
  // Its destruction ends the calls under way.
}

void ClusterPs::Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
                      google::protobuf::MessageLite* reply, StatusCallback done) {
  StatusCallback told = [is_left = connection_.is_left,
                         done = std::move(done)](absl::Status status) mutable {
    if (!status.ok() && is_left->load()) {
      status = absl::UnavailableError(
          absl::StrCat("the ps is at another address now: ", status.message()));
    }
    done(std::move(status));
  };
  const auto with_texts = [this](auto compared) {
    FillTexts(clusters_->texts(), &compared);
    return compared;
  };
  if (absl::string_view(method.path) == kSetView.path) {
    const auto& view = static_cast<const SetViewRequest&>(request);
    return connection_.ps->Start(method, with_texts(view), reply, std::move(told));
  }
  if (absl::string_view(method.path) == kWatchCommand.path) {
    const auto& watch = static_cast<const WatchCommandRequest&>(request);
    return connection_.ps->Start(method, with_texts(watch), reply, std::move(told));
  }
  connection_.ps->Start(method, request, reply, std::move(told));
}

}  // namespace lockstep::chief
