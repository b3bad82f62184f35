#include "common/model/check_initializers.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/unit/common/model/model_text.h"

namespace lockstep {
namespace {

// After a dense layer "fc".
absl::Status Check(const std::string& layer) {
  const std::string text = absl::StrCat(R"(
      input_shape: [2]
      layers { name: "fc" dense { units: 2 kernel_initializer { he {} } } }
      layers { )",
                                        layer, R"( }
      layers { name: "cut" relu {} }
      layers { name: "loss" softmax_cross_entropy {} })");
  REQUIRE(BuildText(text).ok());
  return CheckInitializers(ModelFromText(text));
}

TEST_CASE("an initializer that nothing reads is refused, with its layer") {
  CHECK(Check("name: 'x' variables_of: 'fc' dense { units: 2 }").ok());
  CHECK(Check("name: 'x' dense { units: 3 no_bias: true kernel_initializer { zeros {} } }").ok());
  CHECK(Check("name: 'x' relu {}").ok());
  CHECK(Check("name: 'x' variables_of: 'fc' dense { units: 2 bias_initializer { zeros {} } }") ==
        absl::InvalidArgumentError(
            "layer \"x\": bias_initializer: its variables are those of \"fc\". Remedy: write "
            "bias_initializer at that layer, or not at all"));
  CHECK(Check("name: 'x' dense { units: 3 no_bias: true bias_initializer { zeros {} } }") ==
        absl::InvalidArgumentError(
            "layer \"x\": bias_initializer: the layer has no bias. Remedy: remove it, or no_bias"));
}

}  // namespace
}  // namespace lockstep
