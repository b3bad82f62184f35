// The command that a user types next, ready to be copied.
#pragma once

#include <string>
#include <vector>

#include "common/config/job.h"

namespace lockstep::deploy {

// These words, each quoted where a shell would not take it as it is.
std::string ShellLine(std::vector<std::string> words);

// How this machine's user calls the script `lockstep` of the checkout whose programs are in the
// absolute `bin_dir`: "./lockstep" in the checkout itself, and where no script is beside `bin_dir`.
std::string ScriptBeside(const std::string& bin_dir);

// How to use a trained model: on the test examples of its job, or on those that it was trained on.
// Empty where the job has files for some of the model's state inputs and zeros for others: predict
// takes files of all of them, or of none.
// `script` as ScriptBeside returns it.
std::string PredictCommand(const std::string& script, const std::string& checkpoint,
                           const LoadedJob& job);

// How to go on after a run that was ended before its job was done. Empty when there is nothing to
// go on from: reads the checkpoint folder of `job`, whose paths are absolute. `flags` are those of
// the run that it does not go on without.
std::string ResumeText(const std::string& script, const std::string& job_path, const JobDef& job,
                       const std::vector<std::string>& flags);

}  // namespace lockstep::deploy
