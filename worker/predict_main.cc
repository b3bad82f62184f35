// Uses a trained model without a cluster: predicts examples, or measures the model on labelled
// ones.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/cpus.h"
#include "common/base/exit_code.h"
#include "common/base/flag_value.h"
#include "common/base/remedy.h"
#include "common/base/standard_streams.h"
#include "common/base/status_macros.h"
#include "common/config/flags.h"
#include "common/config/output_flag.h"
#include "common/fs/atomic_file.h"
#include "worker/backend/device_flag.h"
#include "worker/evaluate/data_argument.h"
#include "worker/evaluate/evaluate_range.h"
#include "worker/evaluate/layer_output.h"
#include "worker/evaluate/newest_model.h"
#include "worker/evaluate/output_files.h"
#include "worker/evaluate/prediction.h"
#include "worker/evaluate/trained_model.h"
#include "worker/service/fitting_backend.h"
#include "worker/tower/precision_of.h"

ABSL_FLAG(std::string, checkpoint, "", "checkpoint folder, or a folder of them: then the newest");
ABSL_FLAG(std::string, data, "",
          "FILE[,LABELS]: IDX images with IDX labels or without, or a CSV file with the job's "
          "label column or without, or a text, of which the last held_out is read (default of "
          "evaluate: the job's own test files)");
ABSL_FLAG(std::string, states, "",
          "FILE[,FILE]: with --data, the rows of the model's state inputs, in its order");
ABSL_FLAG(int64_t, limit, 0, "only the first N examples; 0: all");
ABSL_FLAG(std::string, layer, "", "of predict: the output of this layer, not of the last one");
ABSL_FLAG(uint64_t, seed, 0, "of predict: what noise layers draw from");
ABSL_FLAG(std::string, png, "", "of predict: the outputs as images, a grid of them in this file");
ABSL_FLAG(std::string, idx, "",
          "of predict: the outputs as an IDX file, in the units of the job's data");
ABSL_FLAG(int, threads, 0, "threads that compute; 0: all CPUs that this process may use");
ABSL_FLAG(std::string, json, "", "also write the results to this file");

namespace lockstep::worker {
namespace {

using Json = nlohmann::json;

constexpr int64_t kBatch = 256;
constexpr char kUsage[] =
    "predict|evaluate --checkpoint=DIR [--data=FILES]\n"
    "\n"
    "predict   prints a line per example: its index, the class and how probable it is, then the\n"
    "          true class where the files have labels; for a regression the outputs, and with\n"
    "          --layer those of a layer. --png and --idx write outputs to files in place of "
    "lines.\n"
    "          A layer that depends on noise alone needs no --data, but a --limit\n"
    "evaluate  prints the accuracy and the mean loss on examples with labels, and \"(averages)\"\n"
    "          where moving averages stood in for the values of variables\n"
    "\n"
    "The model, the scaling of its inputs and the label column come from the checkpoint.\n";

absl::Status CheckFlags(bool evaluate) {
  if (absl::GetFlag(FLAGS_checkpoint).empty())
    return UsageError("--checkpoint: not set. Remedy: --checkpoint=DIR names what to load");
  for (const auto& [flag, value] : {std::pair("--layer", absl::GetFlag(FLAGS_layer)),
                                    {"--png", absl::GetFlag(FLAGS_png)},
                                    {"--idx", absl::GetFlag(FLAGS_idx)}}) {
    if (!evaluate || value.empty()) continue;
    return UsageError(absl::StrCat(flag, ": not a flag of evaluate. Remedy: predict takes it"));
  }
  if (absl::GetFlag(FLAGS_data).empty() && !absl::GetFlag(FLAGS_states).empty())
    return UsageError("--states: set without --data. Remedy: --data=FILE names their examples");
  LOCKSTEP_RETURN_IF_ERROR(CheckNotNegative("--limit", absl::GetFlag(FLAGS_limit), "examples"));
  LOCKSTEP_RETURN_IF_ERROR(CheckNotNegative("--threads", absl::GetFlag(FLAGS_threads), "CPUs"));
  return CheckOutputFlag("--json", absl::GetFlag(FLAGS_json));
}

struct Session {
  std::string folder;
  TrainedModel model;
  std::unique_ptr<TestSet> examples;
  std::shared_ptr<Device> device;
  std::unique_ptr<Tower> tower;
  int64_t count = 0;  // examples to use
};

// The reader's remedy for a file that is missing is a path in a job file, which a checkpoint lacks.
absl::Status WithFlagAsRemedy(const absl::Status& status) {
  if (!absl::IsNotFound(status) && !absl::IsPermissionDenied(status)) return status;
  return SetRemedy(status, absl::GetFlag(FLAGS_states).empty()
                               ? "--data=FILE names examples that this user may read"
                               : "give --data and --states files that this user may read");
}

absl::StatusOr<std::unique_ptr<TestSet>> OpenExamples(bool evaluate, const TrainedModel& model) {
  const std::string argument = absl::GetFlag(FLAGS_data);
  if (!ReadsExamples(model.graph)) {
    if (!argument.empty())
      return UsageError(
          "--data: nothing reads it: the layer depends on noise alone. Remedy: "
          "leave it out");
    if (absl::GetFlag(FLAGS_limit) == 0)
      return UsageError(
          "--limit: not set, and noise has no end. Remedy: --limit=N says how many "
          "examples to draw");
    return MakeZeroExamples(model.graph, absl::GetFlag(FLAGS_limit));
  }
  DataDef data = model.job.data();
  if (!argument.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(data, DataFromArgument(argument, model));
    LOCKSTEP_RETURN_IF_ERROR(SetStateFiles(absl::GetFlag(FLAGS_states), model, &data));
  } else if (!evaluate) {
    return UsageError("--data: not set. Remedy: --data=FILE names the examples to predict");
  } else if (!HasTestSet(data)) {
    return UsageError("--data: not set, and the job names no test files. Remedy: --data=FILE");
  }
  absl::StatusOr<std::unique_ptr<TestSet>> examples = TestSet::Open(data, model.example_spec());
  if (!examples.ok()) return WithFlagAsRemedy(examples.status());
  return examples;
}

absl::StatusOr<Session> Open(bool evaluate) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Backend chosen, BackendOfFlag());
  Session session;
  std::vector<std::string> warnings;
  absl::StatusOr<NewestModel> newest = LoadNewest(absl::GetFlag(FLAGS_checkpoint), &warnings);
  for (const std::string& warning : warnings) absl::FPrintF(stderr, "warning: %s\n", warning);
  LOCKSTEP_RETURN_IF_ERROR(newest.status());
  session.folder = std::move(newest->folder);
  session.model = std::move(newest->model);
  if (const std::string layer = absl::GetFlag(FLAGS_layer); !layer.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(session.model.graph, CutAtLayer(session.model.graph, layer));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(session.examples, OpenExamples(evaluate, session.model));
  const int64_t limit = absl::GetFlag(FLAGS_limit);
  session.count = session.examples->num_examples();
  if (limit > 0) session.count = std::min(session.count, limit);
  int threads = absl::GetFlag(FLAGS_threads);
  if (threads == 0) threads = UsableCpus();
  const Backend backend = FittingBackend(chosen, session.model.graph);
  session.device = backend.MakeDevice(threads);
  LOCKSTEP_ASSIGN_OR_RETURN(
      session.tower,
      Tower::Create(
          session.model.graph, session.device.get(), backend.ops(PrecisionOf(session.model.job)),
          {.batches = BatchSizes(session.count, kBatch), .training = false, .whole_tables = true}));
  return session;
}

Json ToJson(const Prediction& prediction) {
  if (!prediction.outputs.empty()) {
    Json json = {{"index", prediction.index}, {"outputs", prediction.outputs}};
    if (!prediction.true_outputs.empty()) json["true_outputs"] = prediction.true_outputs;
    return json;
  }
  Json json = {{"index", prediction.index},
               {"class", prediction.label},
               {"probability", prediction.probability}};
  if (prediction.true_label.has_value()) json["label"] = *prediction.true_label;
  return json;
}

// To the files of --png and --idx.
absl::Status WriteOutputs(const Session& session, const std::vector<float>& outputs) {
  const Shape shape = OutputShapeOf(session.model.graph);
  const std::string png = absl::GetFlag(FLAGS_png), idx = absl::GetFlag(FLAGS_idx);
  if (!png.empty()) LOCKSTEP_RETURN_IF_ERROR(WritePng(png, shape, outputs));
  if (!idx.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(WriteExamples(idx, shape, session.model.job.data(), outputs));
  }
  for (const std::string& file : {png, idx}) {
    if (!file.empty()) absl::PrintF("%d of %s: %s\n", session.count, shape.ToString(), file);
  }
  return absl::OkStatus();
}

absl::Status Predict(Session& session, Json& json) {
  const bool to_files = !absl::GetFlag(FLAGS_png).empty() || !absl::GetFlag(FLAGS_idx).empty();
  if (to_files && session.model.graph.is_classifier()) {
    return UsageError(
        "--png, --idx: the model tells classes. Remedy: --layer=NAME, whose outputs are written");
  }
  Json& all = json["predictions"] = Json::array();
  const bool keep = !absl::GetFlag(FLAGS_json).empty();
  std::vector<float> outputs;
  LOCKSTEP_RETURN_IF_ERROR(PredictRange(
      session.tower.get(), session.model, *session.examples,
      {.end = session.count, .batch = kBatch, .seed = absl::GetFlag(FLAGS_seed)},
      [&](const Prediction& prediction) {
        if (keep) all.push_back(ToJson(prediction));
        if (!to_files) {
          std::printf("%s\n", ToLine(prediction).c_str());
          return;
        }
        outputs.insert(outputs.end(), prediction.outputs.begin(), prediction.outputs.end());
      }));
  return to_files ? WriteOutputs(session, outputs) : absl::OkStatus();
}

absl::Status Measure(Session& session, Json& json) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Tower::Evaluation result,
                            EvaluateRange(session.tower.get(), *session.examples,
                                          {session.model.views}, 0, session.count, kBatch));
  const int64_t labels = result.examples * session.model.graph.labels_per_example();
  const double loss = result.loss_sum / static_cast<double>(labels);
  json["loss"] = loss;
  if (session.model.graph.is_classifier()) {
    const double accuracy = static_cast<double>(result.correct) / static_cast<double>(labels);
    json["correct"] = result.correct;
    json["accuracy"] = accuracy;
    absl::PrintF("accuracy %.4f (%d of %d)  ", accuracy, result.correct, labels);
  }
  absl::PrintF("loss %.6g  step %d%s  %s\n", loss, session.model.step,
               session.model.has_averages ? " (averages)" : "", session.folder);
  return absl::OkStatus();
}

absl::Status Run(bool evaluate) {
  LOCKSTEP_RETURN_IF_ERROR(CheckFlags(evaluate));
  LOCKSTEP_ASSIGN_OR_RETURN(Session session, Open(evaluate));
  if (evaluate && !session.examples->has_labels()) {
    return absl::InvalidArgumentError(
        "--data: no labels, so there is nothing to measure. Remedy: --data=IMAGES,LABELS, or a "
        "CSV file with the label column");
  }
  Json json = {{"checkpoint", session.folder},
               {"step", session.model.step},
               {"averages", session.model.has_averages},
               {"examples", session.count}};
  if (!evaluate) LOCKSTEP_RETURN_IF_ERROR(Predict(session, json));
  if (session.examples->has_labels()) LOCKSTEP_RETURN_IF_ERROR(Measure(session, json));
  LOCKSTEP_RETURN_IF_ERROR(FlushOutput());
  const std::string file = absl::GetFlag(FLAGS_json);
  if (file.empty()) return absl::OkStatus();
  return WriteFileAtomically(file, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const bool evaluate = mode == "evaluate";
  const bool named = evaluate || mode == "predict";
  const std::string program = named ? mode : "predict";
  if (const FlagsResult flags =
          HandleFlags(program, kUsage, named ? argc - 1 : argc, named ? argv + 1 : argv);
      flags.exit) {
    return static_cast<int>(flags.code);
  }
  return PrintFailure(program, Run(evaluate));
}

}  // namespace
}  // namespace lockstep::worker

int main(int argc, char** argv) { return lockstep::worker::Main(argc, argv); }
