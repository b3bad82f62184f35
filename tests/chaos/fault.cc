#include "tests/chaos/fault.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace lockstep::test {
namespace {

// For a needed task to be there again, and for calls to be repeated.
constexpr absl::Duration kReturn = absl::Seconds(2);
constexpr absl::Duration kAfterFault = absl::Seconds(3);
// Until all ps are back at the newest checkpoint.
constexpr absl::Duration kRestore = absl::Seconds(10);
constexpr absl::Duration kBeyondLease = absl::Seconds(1);
constexpr absl::Duration kUndisturbed = absl::Seconds(1);
constexpr int kDocumentedRows = 52;

using enum FaultKind;
using enum FaultTarget;

std::vector<Fault> FaultsOfProcesses() {
  std::vector<Fault> faults;
  for (const FaultKind kind : {kKill, kTerminate, kStop}) {
    for (const FaultTarget target : {kWorker, kPs, kChief, kStandby}) {
      faults.push_back({kind, target});
    }
  }
  return faults;
}

void AddFaultsOfStrangers(std::vector<Fault>* faults) {
  for (const FaultKind kind : {kFewDescriptors, kIdleConnections, kGarbage}) {
    for (const FaultTarget target : {kPs, kChief}) faults->push_back({kind, target});
  }
}

void AddFaultsOfLostShards(std::vector<Fault>* faults) {
  faults->push_back({kKill, kPair});
  faults->push_back({kFullDisk, kPs});
  for (const FaultTarget target : {kPs, kChief}) faults->push_back({kKillInSave, target});
}

}  // namespace

std::vector<Fault> AllFaults() {
  std::vector<Fault> all = FaultsOfProcesses();
  for (const FaultKind kind :
       {kReset, kPartition, kMuteRequests, kMuteReplies, kSlowLink, kLatency}) {
    for (const FaultTarget target : {kPs, kChief}) all.push_back({kind, target});
  }
  AddFaultsOfStrangers(&all);
  AddFaultsOfLostShards(&all);
  all.push_back({kKill, kAll});
  all.push_back({kRollingRestart, kAll});
  return all;
}

std::vector<Fault> FaultsOfHosts(bool has_copies) {
  std::vector<Fault> all = FaultsOfProcesses();
  for (const FaultTarget target : {kWorker, kPs, kChief, kStandby}) {
    all.push_back({kHostGone, target});
  }
  for (const FaultTarget target : {kWorker, kPs, kChief}) all.push_back({kSlowLink, target});
  std::vector<std::pair<FaultTarget, FaultTarget>> callers = {
      {kWorker, kPs}, {kWorker, kChief}, {kChief, kPs}, {kStandby, kPs}};
  if (has_copies) callers.emplace_back(kPs, kPs);
  for (const auto& [caller, called] : callers) {
    all.push_back({kPairPartition, caller, called});
    all.push_back({kOneWayPartition, caller, called});
    if (caller != called) all.push_back({kOneWayPartition, called, caller});
  }
  AddFaultsOfStrangers(&all);
  AddFaultsOfLostShards(&all);
  return all;
}

void AddFaultsOfTokens(std::vector<Fault>* faults) {
  for (const FaultTarget target : {kPs, kChief}) faults->push_back({kWrongToken, target});
}

std::vector<Fault> WithoutEnds(std::vector<Fault> faults) {
  std::erase_if(faults, [](const Fault& fault) {
    return !Lasts(fault.kind) && fault.kind != FaultKind::kReset && !IsOfStrangers(fault.kind);
  });
  return faults;
}

bool SameRow(const Fault& a, const Fault& b) {
  return a.kind == b.kind && a.target == b.target && a.peer == b.peer;
}

bool Lasts(FaultKind kind) {
  switch (kind) {
    case FaultKind::kKill:
    case FaultKind::kTerminate:
    case FaultKind::kReset:
    case FaultKind::kFullDisk:
    case FaultKind::kKillInSave:
    case FaultKind::kRollingRestart:
    case FaultKind::kWrongToken:
      return false;
    default:
      return true;
  }
}

bool IsOfStrangers(FaultKind kind) {
  switch (kind) {
    case FaultKind::kFewDescriptors:
    case FaultKind::kIdleConnections:
    case FaultKind::kGarbage:
    case FaultKind::kWrongToken:
      return true;
    default:
      return false;
  }
}

bool MayOverlap(FaultTarget a, FaultTarget b) {
  const auto hits_ps = [](FaultTarget target) {
    return target == FaultTarget::kPs || target == FaultTarget::kPair;
  };
  return a == b || a == FaultTarget::kAll || b == FaultTarget::kAll || (hits_ps(a) && hits_ps(b));
}

bool MayOverlap(const Fault& a, const Fault& b) {
  const auto hits = [&b](FaultTarget target) {
    return MayOverlap(target, b.target) || (b.peer.has_value() && MayOverlap(target, *b.peer));
  };
  return hits(a.target) || (a.peer.has_value() && hits(*a.peer));
}

absl::string_view NameOf(FaultKind kind) {
  switch (kind) {
    case FaultKind::kKill:
      return "kill -9";
    case FaultKind::kTerminate:
      return "SIGTERM";
    case FaultKind::kStop:
      return "SIGSTOP";
    case FaultKind::kReset:
      return "resets";
    case FaultKind::kPartition:
      return "partition";
    case FaultKind::kMuteRequests:
      return "requests lost";
    case FaultKind::kMuteReplies:
      return "replies lost";
    case FaultKind::kSlowLink:
      return "1 Mbit/s";
    case FaultKind::kLatency:
      return "50 ms latency";
    case FaultKind::kFullDisk:
      return "full disk";
    case FaultKind::kKillInSave:
      return "kill in a save";
    case FaultKind::kRollingRestart:
      return "rolling restart";
    case FaultKind::kFewDescriptors:
      return "no descriptors";
    case FaultKind::kIdleConnections:
      return "300 idle peers";
    case FaultKind::kGarbage:
      return "garbage";
    case FaultKind::kWrongToken:
      return "wrong token";
    case FaultKind::kHostGone:
      return "host gone";
    case FaultKind::kPairPartition:
      return "partition";
    case FaultKind::kOneWayPartition:
      return "one way cut";
  }
  return "";
}

absl::string_view NameOf(FaultTarget target) {
  switch (target) {
    case FaultTarget::kWorker:
      return "worker";
    case FaultTarget::kPs:
      return "ps";
    case FaultTarget::kPair:
      return "ps + copy";
    case FaultTarget::kChief:
      return "chief";
    case FaultTarget::kStandby:
      return "standby";
    case FaultTarget::kAll:
      return "all tasks";
  }
  return "";
}

absl::string_view ArrowOf(FaultKind kind) {
  return kind == FaultKind::kOneWayPartition ? " -> " : " <-> ";
}

std::string TargetsOf(const Fault& fault) {
  if (!fault.peer.has_value()) return std::string(NameOf(fault.target));
  return absl::StrCat(NameOf(fault.target), ArrowOf(fault.kind), NameOf(*fault.peer));
}

absl::string_view DocumentedAs(const Fault& fault) {
  const auto by_target = [&fault](absl::string_view worker, absl::string_view ps,
                                  absl::string_view chief, absl::string_view standby) {
    switch (fault.target) {
      case FaultTarget::kWorker:
        return worker;
      case FaultTarget::kPs:
        return ps;
      case FaultTarget::kPair:
        return absl::string_view("F07");
      case FaultTarget::kChief:
        return chief;
      case FaultTarget::kStandby:
        return standby;
      case FaultTarget::kAll:
        return absl::string_view("F46");
    }
    return absl::string_view();
  };
  switch (fault.kind) {
    case FaultKind::kKill:
      return by_target("F01, F02", "F06, F07, F08", "F09", "F41");
    case FaultKind::kTerminate:
      return "F34";
    case FaultKind::kStop:
      return by_target("F11", "F14", "F10", "F10");
    case FaultKind::kPartition:
      return by_target("", "F14", "F16", "");
    case FaultKind::kHostGone:
      return by_target("F16", "F06, F14", "F09, F16", "F14");
    case FaultKind::kPairPartition:
      return fault.peer == FaultTarget::kChief ? "F16" : "F14";
    case FaultKind::kMuteReplies:
      // Workers push all the time, so some answers to applied pushes are among the lost ones.
      return fault.target == FaultTarget::kPs ? "F12, F15" : "F15";
    case FaultKind::kMuteRequests:
    case FaultKind::kOneWayPartition:
      return "F15";
    case FaultKind::kSlowLink:
      return "F17";
    case FaultKind::kReset:
    case FaultKind::kLatency:
      return "F18";
    case FaultKind::kFullDisk:
      return "F22";
    case FaultKind::kKillInSave:
      return "F20";
    case FaultKind::kRollingRestart:
      return "F41";
    case FaultKind::kFewDescriptors:
      return "F47";
    case FaultKind::kIdleConnections:
      return "F29";
    case FaultKind::kGarbage:
      return "F28";
    case FaultKind::kWrongToken:
      return "F36";
  }
  return "";
}

std::vector<std::string> DocumentedRows() {
  std::vector<std::string> rows;
  for (int i = 1; i <= kDocumentedRows; ++i) rows.push_back(absl::StrFormat("F%02d", i));
  return rows;
}

bool IsDocumentedAs(const Fault& fault, absl::string_view row) {
  const std::vector<absl::string_view> rows = absl::StrSplit(DocumentedAs(fault), ", ");
  return std::ranges::find(rows, row) != rows.end();
}

bool IsToBeNamedByBoth(const Fault& fault, absl::Duration lease) {
  return fault.peer.has_value() && fault.lasts >= lease + kBeyondLease;
}

absl::Duration AllowedPause(const Fault& fault, absl::Duration lease) {
  if (fault.target == FaultTarget::kStandby || fault.peer == FaultTarget::kStandby) {
    return kBeyondLease;
  }
  if (IsOfStrangers(fault.kind)) return kUndisturbed;
  if (Lasts(fault.kind)) return fault.lasts + kAfterFault;
  if (fault.kind == FaultKind::kReset) return kAfterFault;
  switch (fault.target) {
    case FaultTarget::kPs:
    case FaultTarget::kPair:
    case FaultTarget::kAll:
      return kRestore;
    case FaultTarget::kChief:
      return lease + kBeyondLease;
    default:
      // After kill -9 the worker before counts until its lease ends.
      return lease + kReturn;
  }
}

}  // namespace lockstep::test
