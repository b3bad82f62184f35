// Command lines with one word that needs no flag's name.
#pragma once

#include <string>
#include <vector>

namespace lockstep::deploy {

// The command line with its bare word, which may come first or last, as the value of the first of
// the flags `valued`. They are the program's flags that take a value, such as "--address".
std::vector<std::string> NameBareWord(const std::vector<std::string>& valued, int argc,
                                      char** argv);

// What HandleFlags takes. Views into `words`.
std::vector<const char*> PointersTo(const std::vector<std::string>& words);

}  // namespace lockstep::deploy
