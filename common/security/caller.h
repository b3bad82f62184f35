// Caller is the process that makes a call, as its credentials prove it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::security {

enum class CallerRole { kChief, kPs, kWorker, kReader, kOperator };

struct Caller {
  // A reader asks for the state of processes, nothing else; an operator may end the job, too.
  CallerRole role = CallerRole::kReader;
  // The index of the ps or worker; nullopt: any of them.
  std::optional<uint32_t> index;

  bool operator==(const Caller&) const = default;
};

// Returns whether a caller that has proved to be `shown` may be `task`. The role must be the same,
// and so must the index if one was proved.
bool Proves(const Caller& shown, const Caller& task);

// "worker/1", "worker", "chief", "reader" or "operator", as credentials write it.
std::string ToString(const Caller& caller);

// nullopt: `text` is none of these. Only a ps and a worker have an index.
std::optional<Caller> ParseCaller(absl::string_view text);

}  // namespace lockstep::security
