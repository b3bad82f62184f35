// Sets the characters that the model of a text knows, and their numbers.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace lockstep::chief {

// The characters of a job's text, by source.
struct TextCharacters {
  std::string occurring;   // in the text
  std::string named;       // by the job file; empty: it names none
  std::string job_before;  // the job that it continues, as in a manifest; empty: none
};

// Sets data.text.characters to those that the job file names, to those of the job before, or to
// those that occur. INVALID_ARGUMENT if a character would change its number or has none. Does
// nothing to a job without a text.
absl::Status SetCharacters(const TextCharacters& characters, JobDef* job);

}  // namespace lockstep::chief
