#include "tests/support/fake_ps_data.h"

#include <cstring>

#include "common/tensor/half_copy.h"

namespace lockstep {
namespace {

class FlatValues final : public PulledValues {
 public:
  FlatValues(PullReply header, std::string payload)
      : header_(std::move(header)), payload_(std::move(payload)) {}

  const PullReply& header() const override { return header_; }

  absl::Status CopyTo(std::span<const std::span<std::byte>> targets) const override {
    size_t at = 0;
    for (size_t i = 0; i < targets.size(); ++i) {
      if (targets[i].size() != header_.pieces(static_cast<int>(i)).size())
        return absl::InvalidArgumentError("target of another size than the piece");
      std::memcpy(targets[i].data(), payload_.data() + at, targets[i].size());
      at += targets[i].size();
    }
    return absl::OkStatus();
  }

  absl::Status WidenTo(DType wire_type, std::span<const std::span<float>> targets) const override {
    size_t at = 0;
    for (size_t i = 0; i < targets.size(); ++i) {
      const size_t bytes = targets[i].size() * SizeOf(wire_type);
      if (bytes != header_.pieces(static_cast<int>(i)).size())
        return absl::InvalidArgumentError("target of another size than the piece");
      Widen(wire_type, payload_.data() + at, targets[i]);
      at += bytes;
    }
    return absl::OkStatus();
  }

 private:
  const PullReply header_;
  const std::string payload_;
};

}  // namespace

std::unique_ptr<PulledValues> MakePulledValues(PullReply header, std::string payload) {
  return std::make_unique<FlatValues>(std::move(header), std::move(payload));
}

void FakePsData::Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                      Callback<PushReply> done) {
  std::string bytes;
  for (const auto& span : payload)
    bytes.append(reinterpret_cast<const char*>(span.data()), span.size());
  done(on_push(header, bytes));
}

}  // namespace lockstep
