// Models written as text, for tests.
#pragma once

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <string>

#include "common/model/graph.h"

namespace lockstep {

inline ModelDef ModelFromText(const std::string& text) {
  ModelDef def;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &def));
  return def;
}

inline absl::StatusOr<ModelGraph> BuildText(const std::string& text) {
  return ModelGraph::Build(ModelFromText(text));
}

// The error of a model that must not build.
inline std::string BuildError(const std::string& text) {
  const absl::StatusOr<ModelGraph> graph = BuildText(text);
  REQUIRE_FALSE(graph.ok());
  CHECK(graph.status().code() == absl::StatusCode::kInvalidArgument);
  const std::string message(graph.status().message());
  CHECK_THAT(message, Catch::Matchers::Contains("Remedy: "));
  return message;
}

}  // namespace lockstep
