// One of the two places where a shard may be: at its home, the main server of its own ps, or at
// its host, the copy server in the process of the next ps in the ring. Either may serve the
// workers; the other one keeps the copy, or nothing.
//
// Lives on the executor's thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "chief/loop/executor.h"
#include "common/base/callback.h"
#include "common/client/ps_control.h"

namespace lockstep::chief {

enum PlaceIndex : size_t { kHome = 0, kHost = 1 };
inline constexpr size_t kNumPlaces = 2;
constexpr PlaceIndex OtherPlace(PlaceIndex place) { return place == kHome ? kHost : kHome; }

// Interface.
class Place {
 public:
  virtual ~Place() = default;

  // Of its ps process, for messages: "ps 0 (host:port)".
  virtual const std::string& name() const = 0;
  // The ps process has moved: its name, and the address of its main server, as of now.
  virtual void Move(std::string name, std::string address) = 0;
  // Calls to the shard's server here. Null before it was found.
  virtual PsControl* ps() = 0;
  // "host:port" of that server. Empty before it was found.
  virtual const std::string& address() const = 0;
  // Finds the server, then asks it for its view. `done` comes on the executor's thread.
  virtual void GetView(Callback<SetViewReply> done) = 0;
  // Calls `restarted` if the server is at another address than before: its process was started
  // again. One that is always at the same address shows it by what it answers.
  virtual void FindRestart(std::function<void()> restarted) = 0;
};

// `ps` and `executor` outlive it.
class HomePlace final : public Place {
 public:
  HomePlace(std::string name, std::string address, PsControl* ps, Executor* executor);

  const std::string& name() const override { return name_; }
  void Move(std::string name, std::string address) override;
  PsControl* ps() override { return ps_; }
  const std::string& address() const override { return address_; }
  void GetView(Callback<SetViewReply> done) override;
  void FindRestart(std::function<void()>) override {}

 private:
  std::string name_;
  std::string address_;
  PsControl* const ps_;
  Executor* const executor_;
};

struct HostPlaceOptions {
  std::string name;     // of the ps that keeps the copy
  std::string address;  // of its main server
  // To the copy server, which is at a port that its ps tells. Destroyed when that is another one:
  // calls under way then end with UNAVAILABLE.
  std::function<std::unique_ptr<PsControl>(const std::string& address)> connect;
};

// Asks the main server of the ps, which opens the copy server, for its port.
class HostPlace final : public Place {
 public:
  // `main` (of the same ps) and `executor` outlive it.
  HostPlace(HostPlaceOptions options, PsControl* main, Executor* executor);

  const std::string& name() const override { return options_.name; }
  void Move(std::string name, std::string address) override;
  PsControl* ps() override { return copy_.get(); }
  const std::string& address() const override { return address_; }
  void GetView(Callback<SetViewReply> done) override;
  void FindRestart(std::function<void()> restarted) override;

 private:
  // "host:port" of the copy server, or an error that says why there is none.
  void FindAddress(Callback<std::string> done);

  HostPlaceOptions options_;
  PsControl* const main_;
  Executor* const executor_;
  std::string address_;
  std::unique_ptr<PsControl> copy_;
};

}  // namespace lockstep::chief
