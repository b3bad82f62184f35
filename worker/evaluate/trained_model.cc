#include "worker/evaluate/trained_model.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/config/text_proto.h"
#include "common/fs/path.h"
#include "common/job/example_spec.h"
#include "common/optimizer/moving_average.h"

namespace lockstep::worker {
namespace {

bool HasAverage(const CheckpointReader& checkpoint, const ModelVariable& variable) {
  return checkpoint.Has(absl::StrCat(variable.name, "/", kAverageSlot));
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> LoadVariables(const CheckpointReader& checkpoint,
                                                  const ModelGraph& graph, bool averages) {
  std::vector<Tensor> values;
  for (const ModelVariable& variable : graph.variables()) {
    Tensor& value = values.emplace_back(variable.dtype, variable.shape);
    if (variable.name == ModelGraph::kLossVariable && !checkpoint.Has(variable.name)) {
      value.FillZero();
      continue;
    }
    std::string name = variable.name;
    if (averages && HasAverage(checkpoint, variable)) absl::StrAppend(&name, "/", kAverageSlot);
    const absl::Status status = checkpoint.ReadInto(name, value.view());
    if (absl::IsNotFound(status) || absl::IsInvalidArgument(status)) {
      return absl::DataLossError(
          absl::StrCat(status.message(), ", which the model of its manifest needs"));
    }
    LOCKSTEP_RETURN_IF_ERROR(status);
  }
  return values;
}

absl::StatusOr<TrainedModel> TrainedModel::Load(const std::string& folder) {
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointReader checkpoint, CheckpointReader::Open(folder));
  const Manifest& manifest = checkpoint.manifest();
  const std::string file = JoinPath(folder, kManifestFile);
  TrainedModel model;
  model.step = manifest.step;
  ModelDef def;
  LOCKSTEP_RETURN_IF_ERROR(ParseTextProto(absl::StrCat(file, ": model"), manifest.model, &def));
  LOCKSTEP_RETURN_IF_ERROR(ParseTextProto(absl::StrCat(file, ": job"), manifest.job, &model.job));
  auto graph = ModelGraph::Build(def);
  if (!graph.ok()) return Annotate(graph.status(), absl::StrCat(file, ": model"));
  model.graph = *std::move(graph);
  const bool use_averages = model.job.evaluation().use_averages();
  LOCKSTEP_ASSIGN_OR_RETURN(model.variables, LoadVariables(checkpoint, model.graph, use_averages));
  model.has_averages = use_averages && absl::c_any_of(model.graph.variables(),
                                                      [&checkpoint](const ModelVariable& variable) {
                                                        return HasAverage(checkpoint, variable);
                                                      });
  for (const Tensor& value : model.variables) model.views.push_back(value.view());
  return model;
}

ExampleSpec TrainedModel::example_spec() const { return ExampleSpecOf(graph); }

}  // namespace lockstep::worker
