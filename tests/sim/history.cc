#include "tests/sim/history.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "common/replicas_proto/convert.h"

namespace lockstep::sim {
namespace {

class RecordedData final : public PsData {
 public:
  RecordedData(PsData* ps, const PsServerId& server, History* history)
      : ps_(ps), server_(server), history_(history) {}

  void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
            Callback<PushReply> done) override {
    ps_->Push(header, std::move(payload),
              [this, header, done = std::move(done)](absl::StatusOr<PushReply> reply) mutable {
                if (reply.ok()) Note(header, *reply);
                done(std::move(reply));
              });
  }
  void PushPull(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                Callback<PushPullReply> done) override {
    ps_->PushPull(
        header, std::move(payload),
        [this, header, done = std::move(done)](absl::StatusOr<PushPullReply> reply) mutable {
          if (reply.ok()) Note(header, *reply);
          done(std::move(reply));
        });
    // Judged now, whenever that is told.
    PushRequest ask = header;
    ask.set_ask(true);
    ask.clear_next();
    ps_->Push(ask, {}, [this, &ask](const absl::StatusOr<PushReply>& reply) {
      if (reply.ok()) Note(ask, *reply);
    });
  }
  void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
    ps_->Pull(request,
              [this, request, epoch = Epoch(request.worker().epoch()), done = std::move(done)](
                  absl::StatusOr<std::unique_ptr<PulledValues>> reply) mutable {
                if (reply.ok()) Note(**reply, request, epoch);
                done(std::move(reply));
              });
  }
  void DequeueToken(const DequeueTokenRequest& request, Callback<DequeueTokenReply> done) override {
    ps_->DequeueToken(request, [this, request, done = std::move(done)](
                                   absl::StatusOr<DequeueTokenReply> reply) mutable {
      if (reply.ok()) Note(request, *reply);
      done(std::move(reply));
    });
  }
  void StoreVersion(const StoreVersionRequest& header,
                    std::vector<std::span<const std::byte>> payload,
                    Callback<StoreVersionReply> done) override {
    ps_->StoreVersion(header, std::move(payload), std::move(done));
  }
  void PutState(const PutStateRequest& header, std::vector<std::span<const std::byte>> payload,
                Callback<PutStateReply> done) override {
    ps_->PutState(header, std::move(payload), std::move(done));
  }
  void Cancel() override { ps_->Cancel(); }

 private:
  void NoteMeans(const PushRequest& push, const PushReply& reply) {
    for (const PushReply::Outcome& outcome : reply.outcomes()) {
      if (outcome.verdict() != ACCEPTED) continue;
      history_->means.push_back({server_.incarnation, outcome.variable(),
                                 GlobalStep(push.local_step()), Epoch(push.worker().epoch())});
    }
  }
  void Note(const PushRequest& push, const PushReply& reply) {
    if (push.has_mean_learning_rate()) return NoteMeans(push, reply);
    for (const PushReply::Outcome& outcome : reply.outcomes()) {
      if (outcome.verdict() == PENDING) continue;
      if (!judged_.insert({outcome.variable(), push.worker().incarnation(), push.push_seq()})
               .second)
        continue;
      history_->judged.push_back({outcome.variable(), WorkerIndex(push.worker().worker()),
                                  Incarnation(push.worker().incarnation()),
                                  PushSeq(push.push_seq()), GlobalStep(push.local_step()),
                                  outcome.verdict() == ACCEPTED, Epoch(push.worker().epoch()),
                                  server_.incarnation});
    }
  }
  void Note(const PushRequest& header, const PushPullReply& reply) {
    Note(header, reply.push);
    if (reply.values != nullptr) {
      Note(*reply.values, header.next().pull(), Epoch(header.worker().epoch()));
    }
    if (!reply.push.next().has_token()) return;
    DequeueTokenRequest dequeue;
    *dequeue.mutable_worker() = header.worker();
    dequeue.set_dequeue_seq(header.next().dequeue_seq());
    dequeue.set_token_step(header.local_step());
    Note(dequeue, reply.push.next().token());
  }
  void Note(const PulledValues& values, const PullRequest& request, Epoch epoch) {
    std::vector<std::vector<float>> parts;
    std::vector<std::span<std::byte>> targets;
    for (const PullPiece& piece : values.header().pieces())
      parts.emplace_back(piece.size() / sizeof(float));
    for (auto& part : parts) targets.push_back(std::as_writable_bytes(std::span(part)));
    if (!values.CopyTo(targets).ok()) return;
    for (int i = 0; i < values.header().pieces_size(); ++i) {
      const PullPiece& piece = values.header().pieces(i);
      NotePulled({.version = GlobalStep(values.header().version()),
                  .variable = piece.variable(),
                  .first = piece.offset() / sizeof(float),
                  .values = std::move(parts[i]),
                  .epoch = epoch,
                  .server = server_.incarnation},
                 request.pieces(i).rows(), history_);
    }
  }
  void Note(const DequeueTokenRequest& request, const DequeueTokenReply& reply) {
    if (reply.done()) return;
    if (!tokens_.insert({request.worker().incarnation(), request.dequeue_seq()}).second) return;
    history_->tokens.push_back({WorkerIndex(request.worker().worker()),
                                Incarnation(request.worker().incarnation()),
                                GlobalStep(reply.step()), DequeueSeq(request.dequeue_seq()),
                                GlobalStep(request.token_step()), server_.incarnation});
  }

  PsData* const ps_;
  const PsServerId server_;
  History* const history_;
  std::set<std::tuple<uint32_t, uint64_t, uint64_t>> judged_;
  std::set<std::pair<uint64_t, uint64_t>> tokens_;
};

class RecordedControl final : public PsControl {
 public:
  RecordedControl(PsControl* ps, const PsServerId& server, History* history)
      : ps_(ps), server_(server), history_(history) {}

  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    if (dynamic_cast<const ReleaseSnapshotRequest*>(&request) != nullptr) ++history_->releases;
    const auto* const view = dynamic_cast<const SetViewRequest*>(&request);
    if (view == nullptr) return ps_->Start(method, request, reply, std::move(done));
    ps_->Start(method, request, reply,
               [this, view = *view, reply = static_cast<const SetViewReply*>(reply),
                done = std::move(done)](absl::Status status) mutable {
                 if (status.ok()) Note(view, *reply);
                 done(std::move(status));
               });
  }

 private:
  void Note(const SetViewRequest& view, const SetViewReply& reply) {
    // A shard with variables may have gone on alone, and stays so.
    const bool has_copy = reply.has_copy() || !reply.has_variables();
    history_->views.push_back({.ps = server_,
                               .term = Term(view.command().term()),
                               .chief = Incarnation(view.command().chief()),
                               .number = view.number(),
                               .epoch = Epoch(view.epoch()),
                               .is_copy = view.role() == COPY,
                               .copy_address = has_copy ? view.copy_address() : "",
                               .replica_views = *FromProto(view.replica_views())});
  }

  PsControl* const ps_;
  const PsServerId server_;
  History* const history_;
};

}  // namespace

void NotePulled(Pulled pulled, absl::Span<const int64_t> rows, History* history) {
  if (rows.empty()) return history->pulled.push_back(std::move(pulled));
  const size_t width = pulled.values.size() / rows.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto begin = pulled.values.begin() + static_cast<std::ptrdiff_t>(i * width);
    Pulled row = pulled;
    row.first = static_cast<size_t>(rows[i]) * width;
    row.values.assign(begin, begin + static_cast<std::ptrdiff_t>(width));
    history->pulled.push_back(std::move(row));
  }
}

int History::TokensOf(GlobalStep step) const {
  return static_cast<int>(std::count_if(
      tokens.begin(), tokens.end(), [&](const HandedOut& token) { return token.step == step; }));
}

int History::Pushes(uint32_t variable, GlobalStep stamp) const {
  return static_cast<int>(std::count_if(judged.begin(), judged.end(), [&](const Judged& push) {
    return push.variable == variable && push.stamp == stamp;
  }));
}

int History::Accepted(uint32_t variable, GlobalStep stamp) const {
  return static_cast<int>(std::count_if(judged.begin(), judged.end(), [&](const Judged& push) {
    return push.variable == variable && push.stamp == stamp && push.accepted;
  }));
}

int History::Accepted(uint32_t variable) const {
  return static_cast<int>(std::count_if(judged.begin(), judged.end(), [&](const Judged& push) {
    return push.variable == variable && push.accepted;
  }));
}

std::unique_ptr<PsControl> MakeRecordedControl(PsControl* ps, const PsServerId& server,
                                               History* history) {
  return std::make_unique<RecordedControl>(ps, server, history);
}

std::unique_ptr<PsData> MakeRecorded(PsData* ps, const PsServerId& server, History* history) {
  return std::make_unique<RecordedData>(ps, server, history);
}

}  // namespace lockstep::sim
