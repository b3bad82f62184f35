#include "common/optimizer_proto/clipping_of.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

TEST_CASE("each clipping of a job becomes its rule, with its limit") {
  Clipping clipping;
  CHECK(ClippingOf(clipping).kind == ClippingKind::kNone);
  clipping.set_value(1.5f);
  CHECK(ClippingOf(clipping).kind == ClippingKind::kValue);
  CHECK(ClippingOf(clipping).limit == 1.5f);
  clipping.set_norm(2.5f);
  CHECK(ClippingOf(clipping).kind == ClippingKind::kNorm);
  CHECK(ClippingOf(clipping).limit == 2.5f);
  clipping.set_global_norm(3.5f);
  CHECK(ClippingOf(clipping).kind == ClippingKind::kGlobalNorm);
  CHECK(ClippingOf(clipping).limit == 3.5f);
}

}  // namespace
}  // namespace lockstep
