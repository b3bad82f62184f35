// The sources that this test was built from.
#pragma once

#include <string>
#include <vector>

#include "tests/layering/package_table.h"

namespace lockstep::layering {

// All files below these folders of the tree with one of these endings, sorted by path. Reads the
// tree itself, so that a file which no BUILD file names is seen as well.
std::vector<Source> ReadSources(const std::vector<std::string>& folders,
                                const std::vector<std::string>& endings);

// A file of the tree or of the test's inputs, by its path from the root.
std::string ReadInput(const std::string& path);

}  // namespace lockstep::layering
