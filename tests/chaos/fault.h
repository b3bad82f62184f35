// The faults that a chaos run injects, and what each of them may cost. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::test {

enum class FaultKind {
  kKill,          // SIGKILL; the task is started again at once
  kTerminate,     // SIGTERM; the same
  kStop,          // SIGSTOP, then SIGCONT
  kReset,         // all connections to the task end with a reset
  kPartition,     // nothing passes between the task and its callers, and nobody is told
  kMuteRequests,  // the same, from the callers to the task only
  kMuteReplies,   // the same, from the task to its callers only
  kSlowLink,      // 1 Mbit/s for each connection to the task; of a host, for all it sends and gets
  kLatency,       // 50 ms in each direction, up to 20 more or less
  kFullDisk,      // it is killed, and the first writes of its successor fail with ENOSPC
  kKillInSave,    // SIGKILL while it writes a file of a checkpoint
  kRollingRestart,   // SIGTERM to each task in turn; each is started again at once
  kFewDescriptors,   // its soft limit of descriptors is what it has open, and others connect
  kIdleConnections,  // 300 connections to it say nothing
  kGarbage,          // 64 connections with bytes that are no HTTP/2, or too few of them
  kWrongToken,       // calls without a token, and with that of another job
  // Of hosts, and nobody is told:
  kHostGone,         // nothing passes between the task's host and any other
  kPairPartition,    // nothing passes between the hosts of two tasks
  kOneWayPartition,  // nothing passes from the host of a task to that of its peer
};

enum class FaultTarget {
  kWorker,
  kPs,
  kPair,   // a ps and the next one, which keeps its copy where the job has copies
  kChief,  // the one that commands
  kStandby,
  kAll
};

struct Fault {
  FaultKind kind;
  FaultTarget target;
  std::optional<FaultTarget> peer = std::nullopt;  // of a fault between two tasks: the other one
  // Of workers and ps; of a pair's first ps. Of all tasks: the ps that logs have to name.
  int index = 0;
  int peer_index = 0;
  absl::Duration lasts;  // zero: it is over at once
};

// In the order in which reports list them: all that can be injected where proxies stand before
// tasks.
std::vector<Fault> AllFaults();
// The same where each task has a host of its own. `has_copies`: ps talk to each other.
std::vector<Fault> FaultsOfHosts(bool has_copies);
// Those of a job with a token besides.
void AddFaultsOfTokens(std::vector<Fault>* faults);
// Those of `faults` of which no process ends, but for a chief that the other one replaces.
std::vector<Fault> WithoutEnds(std::vector<Fault> faults);
// Whether two faults have the same row in a report.
bool SameRow(const Fault& a, const Fault& b);
// Whether `fault` stays until it is healed.
bool Lasts(FaultKind kind);
// Whether strangers cause it, who may cost the job nothing.
bool IsOfStrangers(FaultKind kind);
// Whether a fault of `a` and one of `b` may hit the same task.
bool MayOverlap(FaultTarget a, FaultTarget b);
bool MayOverlap(const Fault& a, const Fault& b);
absl::string_view NameOf(FaultKind kind);
absl::string_view NameOf(FaultTarget target);
// Whom it hits: "ps", "worker <-> ps", "worker -> ps".
std::string TargetsOf(const Fault& fault);
// Between the names of two tasks that a fault of this kind hits: " <-> ".
absl::string_view ArrowOf(FaultKind kind);
// Its rows in docs/faults.md: "F06, F07".
absl::string_view DocumentedAs(const Fault& fault);
// All rows of docs/faults.md: "F01" to "F52".
std::vector<std::string> DocumentedRows();
// Whether `row`, such as "F06", is one of those of `fault`.
bool IsDocumentedAs(const Fault& fault, absl::string_view row);
// Whether it is between two tasks, and lasts for so long that each has to name the other.
bool IsToBeNamedByBoth(const Fault& fault, absl::Duration lease);
// The longest time without a step that `fault` may cost, on a machine that does nothing else.
absl::Duration AllowedPause(const Fault& fault, absl::Duration lease);

}  // namespace lockstep::test
