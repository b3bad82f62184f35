#include "common/optimizer/sgd.h"

#include "common/optimizer/float_dispatch.h"

namespace lockstep {
namespace {

class Sgd final : public UpdateRule {
 public:
  absl::string_view name() const override { return "sgd"; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      const T* old_value = update.old_value.as<T>().data();
      const T* gradient = update.gradient.as<T>().data();
      const std::span<T> value = update.new_value.as<T>();
      const T rate = update.learning_rate;
      for (size_t i = 0; i < value.size(); ++i) value[i] = old_value[i] - gradient[i] * rate;
    });
  }
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeSgd() { return std::make_unique<Sgd>(); }

}  // namespace lockstep
