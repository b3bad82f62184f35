#include "chief/copies/place.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/config/address.h"

namespace lockstep::chief {

HomePlace::HomePlace(std::string name, std::string address, PsControl* ps, Executor* executor)
    : name_(std::move(name)), address_(std::move(address)), ps_(ps), executor_(executor) {}

void HomePlace::Move(std::string name, std::string address) {
  name_ = std::move(name);
  address_ = std::move(address);
}

void HomePlace::GetView(Callback<SetViewReply> done) {
  ps_->Call(kGetView, GetViewRequest(), On<SetViewReply>(executor_, std::move(done)));
}

HostPlace::HostPlace(HostPlaceOptions options, PsControl* main, Executor* executor)
    : options_(std::move(options)), main_(main), executor_(executor) {}

void HostPlace::Move(std::string name, std::string address) {
  options_.name = std::move(name);
  options_.address = std::move(address);
}

void HostPlace::FindAddress(Callback<std::string> done) {
  GetViewRequest request;
  request.set_opens_copy_port(true);
  main_->Call(kGetView, request,
              On<SetViewReply>(executor_, [this, done = std::move(done)](
                                              const absl::StatusOr<SetViewReply>& main) mutable {
                if (!main.ok()) return done(main.status());
                if (main->copy_port() == 0) {
                  return done(absl::FailedPreconditionError(absl::StrCat(
                      options_.name,
                      " keeps no copies. Remedy: install the same version everywhere, and use a "
                      "cluster spec with two ps")));
                }
                absl::StatusOr<Address> address = ParseAddress(options_.address);
                if (!address.ok()) return done(Annotate(address.status(), options_.name));
                address->port = static_cast<int>(main->copy_port());
                done(address->ToString());
              }));
}

void HostPlace::GetView(Callback<SetViewReply> done) {
  FindAddress([this, done = std::move(done)](absl::StatusOr<std::string> address) mutable {
    if (!address.ok()) return done(address.status());
    if (address_ != *address) {
      copy_ = options_.connect(*address);
      address_ = *std::move(address);
    }
    ps()->Call(kGetView, GetViewRequest(), On<SetViewReply>(executor_, std::move(done)));
  });
}

void HostPlace::FindRestart(std::function<void()> restarted) {
  FindAddress([this, restarted = std::move(restarted)](const absl::StatusOr<std::string>& address) {
    if (address.ok() && *address != address_) restarted();
  });
}

}  // namespace lockstep::chief
