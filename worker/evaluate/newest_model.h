// LoadNewest loads the model that a path names: a checkpoint, or the newest of a folder of them, in
// which a running job may save and delete meanwhile.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/evaluate/trained_model.h"

namespace lockstep::worker {

struct NewestModel {
  std::string folder;  // of its checkpoint
  TrainedModel model;
};

// Errors and warnings as ResolveCheckpoint, with the remedy of a program that has --checkpoint, and
// errors as TrainedModel::Load. A checkpoint that was the newest, and is deleted before it is
// loaded, is no damaged one: the folder is looked at again, at most three times.
absl::StatusOr<NewestModel> LoadNewest(const std::string& path, std::vector<std::string>* warnings);

}  // namespace lockstep::worker
