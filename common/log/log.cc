#include "common/log/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/printable.h"

namespace lockstep::log {
namespace {

// A longer line says no more. Text of a peer has at most limits::kMaxErrorBytes.
constexpr size_t kMaxLineBytes = 16 << 10;

// Messages quote peers and files: they are escaped here, once for all.
void Write(spdlog::level::level_enum level, absl::string_view message) {
  if (!spdlog::default_logger_raw()->should_log(level)) return;
  const std::string line = Printable(message, kMaxLineBytes);
  spdlog::default_logger_raw()->log(level, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

absl::Status Init(absl::string_view process, absl::string_view level) {
  if (level != "info" && level != "warning" && level != "error") {
    return UsageError(absl::StrCat("--log_level: expected info, warning or error, got \"", level,
                                   "\". Remedy: leave it out for info"));
  }
  auto logger = std::make_shared<spdlog::logger>(
      std::string(process), std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%fZ %^%L%$ %n: %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(std::string(level)));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

void Info(absl::string_view message) { Write(spdlog::level::info, message); }
void Warning(absl::string_view message) { Write(spdlog::level::warn, message); }
void Error(absl::string_view message) { Write(spdlog::level::err, message); }

}  // namespace lockstep::log
