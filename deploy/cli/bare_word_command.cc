#include "deploy/cli/bare_word_command.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/standard_streams.h"
#include "common/config/flags.h"
#include "deploy/cli/finish_command.h"

namespace lockstep::deploy {
namespace {

// Whether `word` is one of these flags without "=": the next word is its value.
bool TakesNext(const std::string& word, const std::vector<std::string>& flags) {
  return std::find(flags.begin(), flags.end(), word) != flags.end();
}

std::vector<std::string> NameBareWord(const std::vector<std::string>& valued, int argc,
                                      char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  for (size_t i : {size_t{1}, words.size() - 1}) {
    if (i < 1 || i >= words.size() || absl::StartsWith(words[i], "-")) continue;
    if (TakesNext(words[i - 1], valued)) continue;
    words[i] = absl::StrCat(valued[0], "=", words[i]);
    break;
  }
  return words;
}

}  // namespace

int RunCommand(const BareWordCommand& command, int argc, char** argv,
               absl::FunctionRef<absl::StatusOr<int>()> run) {
  OpenStandardStreams();
  const std::vector<std::string> words = NameBareWord(command.valued, argc, argv);
  std::vector<const char*> arguments;
  arguments.reserve(words.size());
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const FlagsResult flags = HandleFlags(command.name, command.usage,
                                        static_cast<int>(arguments.size()), arguments.data());
  if (flags.exit) return static_cast<int>(flags.code);
  return FinishCommand(command.name, run());
}

}  // namespace lockstep::deploy
