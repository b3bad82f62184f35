#include "deploy/cli/bare_word.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lockstep::deploy {
namespace {

// Whether `word` is one of these flags without "=": the next word is its value.
bool TakesNext(const std::string& word, const std::vector<std::string>& flags) {
  return std::find(flags.begin(), flags.end(), word) != flags.end();
}

}  // namespace

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

std::vector<const char*> PointersTo(const std::vector<std::string>& words) {
  std::vector<const char*> pointers;
  pointers.reserve(words.size());
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return pointers;
}

}  // namespace lockstep::deploy
