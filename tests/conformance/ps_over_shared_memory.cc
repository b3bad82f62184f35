// A worker that shares its host's memory with the ps: gradients are pushed from there, values come
// as places in the ps's.
#include <cstring>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/base/check.h"
#include "ps/service/ps_server.h"
#include "tests/conformance/ps_under_test.h"

namespace lockstep {
namespace {

// Puts what is pushed into the memory, each push in a place of its own, as a worker's tower writes
// it there; dense gradients alone go from there. Asks for values in place. The suite pushes in the
// names of several workers, of which one at a time has the memory: the others' go as bytes.
class SharingData final : public PsData {
 public:
  explicit SharingData(const ClientOptions& options) {
    auto memory = GradientMemory::Create(kBytes);
    LOCKSTEP_CHECK(memory.ok());
    memory_ = *std::move(memory);
    data_ = MakePsData(options, memory_.get());
  }

  void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
            Callback<PushReply> done) override {
    Send(&PsData::Push, header, std::move(payload), std::move(done));
  }
  void PushPull(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                Callback<PushPullReply> done) override {
    PushRequest wishing = header;
    if (header.next().has_pull()) wishing.mutable_next()->mutable_pull()->set_in_memory(true);
    Send(&PsData::PushPull, wishing, std::move(payload), std::move(done));
  }
  void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
    PullRequest wishing = request;
    wishing.set_in_memory(true);
    data_->Pull(wishing, std::move(done));
  }
  void DequeueToken(const DequeueTokenRequest& request, Callback<DequeueTokenReply> done) override {
    data_->DequeueToken(request, std::move(done));
  }
  void ShareMemory(const WorkerIdentity& worker, Callback<bool> done) override {
    data_->ShareMemory(worker, std::move(done));
  }
  void Cancel() override { data_->Cancel(); }
  bool SharesMemory() const override { return data_->SharesMemory(); }

 private:
  static constexpr uint64_t kBytes = 1 << 20;

  template <typename Reply>
  using Method = void (PsData::*)(const PushRequest&, std::vector<std::span<const std::byte>>,
                                  Callback<Reply>);

  template <typename Reply>
  void Send(Method<Reply> method, const PushRequest& header,
            std::vector<std::span<const std::byte>> payload, Callback<Reply> done) {
    PushRequest placed = header;
    placed.set_in_memory(header.pieces_size() == static_cast<int>(payload.size()));
    for (int i = 0; placed.in_memory() && i < header.pieces_size(); ++i) {
      const PushPiece& piece = header.pieces(i);
      placed.set_in_memory(piece.rows() == 0 && piece.size() == payload[i].size());
    }
    if (placed.in_memory()) {
      for (std::span<const std::byte>& part : payload) part = InMemory(part);
      placed.set_in_memory(data_->SendsByReference(payload.front()));
    }
    if (!placed.in_memory()) {
      return (data_.get()->*method)(placed, std::move(payload), std::move(done));
    }
    (data_.get()->*method)(placed, payload,
                           [this, method, header, payload,
                            done = std::move(done)](absl::StatusOr<Reply> reply) mutable {
                             if (!absl::IsNotFound(reply.status())) return done(std::move(reply));
                             (data_.get()->*method)(header, payload, std::move(done));
                           });
  }

  std::span<const std::byte> InMemory(std::span<const std::byte> bytes) {
    absl::MutexLock lock(&mutex_);
    pushed_.push_back(memory_->Take(DType::kUInt8, Shape({static_cast<int64_t>(bytes.size())})));
    const std::span<std::byte> copy = pushed_.back().view().bytes();
    if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
    return copy;
  }

  std::unique_ptr<GradientMemory> memory_;
  absl::Mutex mutex_;
  std::vector<Tensor> pushed_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PsData> data_;  // last: its calls look at what was pushed
};

class PsOverSharedMemory final : public PsUnderTest {
 public:
  PsOverSharedMemory() {
    auto server = ps::PsServer::Start(
        &shard_, {.address = "127.0.0.1:0",
                  .memory = &desk_,
                  .identity = {.clusters = std::make_shared<KnownClusterSpecs>(kTestCluster),
                               .incarnation = Incarnation(17)}});
    LOCKSTEP_CHECK(server.ok());
    server_ = *std::move(server);
  }

  std::unique_ptr<PsControl> NewControl() override { return MakePsControl(Options()); }
  std::unique_ptr<PsData> NewData() override { return std::make_unique<SharingData>(Options()); }

 private:
  ClientOptions Options() const {
    return {.address = absl::StrCat("127.0.0.1:", server_->port()), .name = "ps 0"};
  }

  SharedMemoryRegistry desk_;
  ps::Shard shard_{ps::ShardOptions{
      .make_value_memory = [this](uint64_t bytes) { return desk_.MakeValues(bytes); }}};
  std::unique_ptr<ps::PsServer> server_;
};

}  // namespace

std::unique_ptr<PsUnderTest> MakePsOverSharedMemory() {
  return std::make_unique<PsOverSharedMemory>();
}

}  // namespace lockstep
