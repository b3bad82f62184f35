// PNG files (ISO/IEC 15948): 8 bits per channel, no palette, no interlacing.
#pragma once

#include <string>

#include "common/image/image.h"

namespace lockstep {

// The bytes of the file. The image has pixels, and 1 or 3 channels (CHECK).
std::string EncodePng(const Image& image);

}  // namespace lockstep
