#include "common/base/quantity.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep {

std::string WithCommas(uint64_t number) {
  const std::string digits = absl::StrCat(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string CountText(uint64_t count, absl::string_view singular, absl::string_view plural) {
  const std::string number = WithCommas(count);
  if (count == 1) return absl::StrCat(number, " ", singular);
  return plural.empty() ? absl::StrCat(number, " ", singular, "s")
                        : absl::StrCat(number, " ", plural);
}

std::string BytesText(uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = bytes / 1024.0;
  const char* unit = "KiB";
  for (const char* next : {"MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return absl::StrFormat("%.1f %s", value, unit);
}

std::string SecondsText(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "?";
  if (seconds < 9.95) return absl::StrFormat("%.1f s", seconds);
  const int64_t whole = std::llround(seconds);
  if (whole < 60) return absl::StrCat(whole, " s");
  if (whole < 3600) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string DurationText(absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  if (seconds >= 600 && seconds < 7200) return absl::StrFormat("%.0f min", seconds / 60);
  if (seconds >= 7200 && seconds <= 1e9) return absl::StrFormat("%.1f h", seconds / 3600);
  if (seconds >= 60 && seconds < 600) return absl::StrFormat("%.0f s", seconds);
  const std::string text = SecondsText(seconds);
  return text == "1:00" ? "60 s" : text;  // 59.6 s
}

std::string RateText(double per_second) {
  if (!std::isfinite(per_second) || per_second < 0 || per_second > 1e18) return "?";
  if (per_second >= 1000) return WithCommas(std::llround(per_second));
  return per_second >= 10 ? absl::StrFormat("%.1f", per_second)
                          : absl::StrFormat("%.2f", per_second);
}

std::string LossText(double loss) {
  if (std::isnan(loss)) return "nan";  // printf writes the sign of one, too
  // From here on four decimals say nothing, and before long there are none.
  return std::abs(loss) < 1e6 ? absl::StrFormat("%.4f", loss) : absl::StrFormat("%.4g", loss);
}

}  // namespace lockstep
