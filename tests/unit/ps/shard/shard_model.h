// ShardModel is a shard written as simply as possible: no chunks in buffers, no parallel parts, no
// recycling. It remembers every status ever given. Random tests compare the shard with it.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "ps/ledger/push_ledger.h"
#include "ps/shard/calls.h"

namespace lockstep::ps::test {

struct ModelGrant {
  uint32_t required = 1;
  float learning_rate = 0;
};

class ShardModel {
 public:
  struct Contribution {
    uint32_t worker;
    uint64_t push_seq;
    std::vector<float> gradient;
  };
  struct Piece {
    size_t variable;
    uint64_t offset;
    uint64_t size;
    const std::vector<float>* gradient;
  };

  // Variables of these sizes, all zero; the last one is a statistic.
  ShardModel(std::vector<size_t> sizes, bool once_per_replica)
      : once_per_replica_(once_per_replica), variables_(sizes.size()) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      variables_[i].versions[0] = std::vector<float>(sizes[i]);
    }
  }

  // Pushes one message of a live incarnation. Returns the statuses of its pieces.
  std::vector<PushStatus> Push(uint32_t worker, uint64_t incarnation, uint64_t seq, int64_t stamp,
                               const std::vector<Piece>& pieces) {
    uint64_t& newest = newest_[{worker, incarnation}];
    if (seq > newest) {
      newest = seq;
      for (Variable& variable : variables_) variable.partial.erase(worker);
    }
    std::vector<PushStatus> statuses;
    for (const Piece& piece : pieces) {
      statuses.push_back(Receive(worker, incarnation, seq, stamp, piece));
    }
    CloseWhatCan();
    return statuses;
  }

  // The same for a message that only asks.
  std::vector<PushStatus> Ask(uint32_t worker, uint64_t incarnation, uint64_t seq, int64_t stamp,
                              const std::vector<Piece>& pieces) {
    Push(worker, incarnation, seq, stamp, {});
    std::vector<PushStatus> statuses;
    for (const Piece& piece : pieces) {
      const std::optional<PushStatus> verdict =
          Judge(worker, incarnation, seq, stamp, piece.variable);
      statuses.push_back(verdict.value_or(PushStatus::kPending));
    }
    return statuses;
  }

  void Grant(int64_t step, const ModelGrant& grant) {
    if (step >= step_) grants_[step] = grant;
    CloseWhatCan();
  }

  // The worker's old incarnation is gone.
  void Replace(uint32_t worker) {
    for (Variable& variable : variables_) variable.partial.erase(worker);
  }

  int64_t step() const { return step_; }
  int64_t newest(size_t variable) const { return variables_[variable].step; }
  const std::vector<float>& ValueAt(size_t variable, int64_t version) const {
    return variables_[variable].versions.at(version);
  }
  uint64_t accepted() const { return accepted_; }
  uint64_t stale() const { return stale_; }
  // Largest relative distance of a mean from the same mean in double.
  double worst_error() const { return worst_error_; }
  bool counted_twice() const { return counted_twice_; }

 private:
  using Key =
      std::tuple<uint32_t, uint64_t, uint64_t, size_t>;  // worker, incarnation, seq, variable
  struct Partial {
    uint64_t incarnation, seq;
    int64_t stamp;
    std::vector<bool> have;  // by byte
  };
  struct Variable {
    int64_t step = 0;
    std::map<uint32_t, Partial> partial;
    std::vector<Contribution> held;
    std::map<int64_t, std::vector<float>> versions;
  };

  // nullopt: the gradient is wanted.
  std::optional<PushStatus> Judge(uint32_t worker, uint64_t incarnation, uint64_t seq,
                                  int64_t stamp, size_t index) {
    Variable& variable = variables_[index];
    const uint64_t newest = newest_[{worker, incarnation}];
    const Key key(worker, incarnation, seq, index);
    if (seq + PushLedger::kWindow <= newest) return PushStatus::kStale;
    if (const auto told = told_.find(key); told != told_.end()) return told->second;
    if (seq < newest) return PushStatus::kStale;
    if (stamp < variable.step) {
      ++stale_;
      return told_[key] = PushStatus::kStale;
    }
    const bool is_counted =
        once_per_replica_ &&
        std::any_of(variable.held.begin(), variable.held.end(),
                    [&](const Contribution& held) { return held.worker == worker; });
    if (is_counted) return told_[key] = PushStatus::kAccepted;
    return std::nullopt;
  }

  PushStatus Receive(uint32_t worker, uint64_t incarnation, uint64_t seq, int64_t stamp,
                     const Piece& piece) {
    if (const auto verdict = Judge(worker, incarnation, seq, stamp, piece.variable)) {
      return *verdict;
    }
    Variable& variable = variables_[piece.variable];
    const Key key(worker, incarnation, seq, piece.variable);
    Partial& partial = variable.partial[worker];
    partial.incarnation = incarnation;
    partial.seq = seq;
    partial.stamp = stamp;
    partial.have.resize(piece.gradient->size() * sizeof(float));
    for (uint64_t at = piece.offset; at < piece.offset + piece.size; ++at) partial.have[at] = true;
    if (std::find(partial.have.begin(), partial.have.end(), false) != partial.have.end()) {
      return PushStatus::kPending;
    }
    variable.partial.erase(worker);
    variable.held.push_back({worker, seq, *piece.gradient});
    ++accepted_;
    return told_[key] = PushStatus::kAccepted;
  }

  void CloseWhatCan() {
    while (grants_.contains(step_)) {
      const ModelGrant& grant = grants_.at(step_);
      bool is_over = true;
      for (size_t i = 0; i < variables_.size(); ++i) {
        Variable& variable = variables_[i];
        if (variable.step == step_ && variable.held.size() >= grant.required) {
          Close(i, grant.learning_rate);
        }
        is_over = is_over && variable.step > step_;
      }
      if (!is_over) return;
      ++step_;
    }
  }

  void Close(size_t index, float learning_rate) {
    Variable& variable = variables_[index];
    std::stable_sort(variable.held.begin(), variable.held.end(),
                     [](const Contribution& a, const Contribution& b) {
                       return std::tie(a.worker, a.push_seq) < std::tie(b.worker, b.push_seq);
                     });
    std::set<uint32_t> workers;
    for (const Contribution& held : variable.held) workers.insert(held.worker);
    counted_twice_ |= once_per_replica_ && workers.size() != variable.held.size();

    const bool is_statistic = index + 1 == variables_.size();
    std::vector<float> value = variable.versions.at(variable.step);
    const size_t count = variable.held.size();
    for (size_t i = 0; i < value.size(); ++i) {
      float sum = variable.held[0].gradient[i];
      double exact = sum;
      double magnitude = std::abs(exact);
      for (size_t k = 1; k < count; ++k) {
        sum += variable.held[k].gradient[i];
        exact += variable.held[k].gradient[i];
        magnitude += std::abs(variable.held[k].gradient[i]);
      }
      const float mean = sum / static_cast<float>(count);
      exact /= static_cast<double>(count);
      if (magnitude > 0) worst_error_ = std::max(worst_error_, std::abs(mean - exact) / magnitude);
      value[i] = is_statistic ? mean : value[i] - mean * learning_rate;
    }
    variable.held.clear();
    ++variable.step;
    variable.versions[variable.step] = std::move(value);
    for (auto partial = variable.partial.begin(); partial != variable.partial.end();) {
      if (partial->second.stamp >= variable.step) {
        ++partial;
        continue;
      }
      told_[Key(partial->first, partial->second.incarnation, partial->second.seq, index)] =
          PushStatus::kStale;
      ++stale_;
      partial = variable.partial.erase(partial);
    }
  }

  const bool once_per_replica_;
  std::vector<Variable> variables_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> newest_;  // push_seq
  std::map<Key, PushStatus> told_;
  std::map<int64_t, ModelGrant> grants_;
  int64_t step_ = 0;
  uint64_t accepted_ = 0;
  uint64_t stale_ = 0;
  double worst_error_ = 0;
  bool counted_twice_ = false;
};

}  // namespace lockstep::ps::test
