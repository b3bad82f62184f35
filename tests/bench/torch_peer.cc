#include "tests/bench/torch_peer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/bench/network_json.h"

namespace lockstep::bench {
namespace {

constexpr char kScript[] = "tests/bench/torch_network.py";

}  // namespace

absl::StatusOr<std::unique_ptr<TorchPeer>> TorchPeer::Start(const TorchOptions& options,
                                                            const TowerModel& model) {
  LOCKSTEP_ASSIGN_OR_RETURN(nlohmann::json network, NetworkJson(model.graph));
  network["batch"] = model.batch;
  network["threads"] = options.threads;
  network["tf32"] = model.precision != worker::Precision::kFloat32;
  network["bfloat16"] = model.precision == worker::Precision::kBfloat16;
  network["device"] = options.on_gpu ? "cuda" : "cpu";
  network["compiled"] = options.compiled;
  absl::StatusOr<std::unique_ptr<PeerProcess>> process =
      PeerProcess::Start({options.python, kScript});
  const absl::StatusOr<std::string> hello = process.ok()
                                                ? (*process)->Ask(network.dump())
                                                : absl::StatusOr<std::string>(process.status());
  if (!hello.ok()) {
    return absl::Status(hello.status().code(),
                        absl::StrCat("PyTorch did not start: ", hello.status().message(),
                                     ". Remedy: ./lockstep bench --peers"));
  }
  std::unique_ptr<TorchPeer> peer(new TorchPeer(*std::move(process)));
  const nlohmann::json says = nlohmann::json::parse(*hello);
  peer->name_ = absl::StrCat("PyTorch ", says["version"].get<std::string>());
  peer->how_ = absl::StrCat("PyTorch with ", says["way"].get<std::string>(),
                            ", its fastest way, and ", says["blas"].get<std::string>());
  return peer;
}

absl::StatusOr<double> TorchPeer::SecondsFor(int64_t steps) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string answer, process_->Ask(absl::StrCat(steps)));
  double seconds = 0;
  if (!absl::SimpleAtod(answer, &seconds)) {
    return absl::InternalError(absl::StrCat(kScript, ": expected seconds, got ", answer));
  }
  return seconds;
}

}  // namespace lockstep::bench
