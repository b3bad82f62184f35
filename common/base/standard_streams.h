// Standard input, output and error of a program.
#pragma once

#include "absl/status/status.h"

namespace lockstep {

// Opens /dev/null for each of descriptors 0, 1 and 2 that is closed. Otherwise the next socket or
// file takes its number, and log lines go there. First thing in main.
void OpenStandardStreams();

// A write to a pipe without a reader fails with EPIPE; it does not end the process. First thing in
// main of a program that does more than print.
void IgnoreBrokenPipes();

// Writes what stdout still buffers. DATA_LOSS with exit code 74: something printed to stdout since
// the start was not written, such as to a full disk.
absl::Status FlushOutput();

}  // namespace lockstep
