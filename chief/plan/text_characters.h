// Which characters the model of a text knows, and their numbers.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace lockstep::chief {

// Sets data.text.characters of a job whose text has the characters `occurring`: to what it says,
// to those of the job that it goes on from (`job_before`, a text as in a manifest; empty: none), or
// to those that occur. INVALID_ARGUMENT where a character would change its number or has none. Does
// nothing to a job without a text.
absl::Status SetCharacters(absl::string_view occurring, absl::string_view job_before, JobDef* job);

}  // namespace lockstep::chief
