#include "common/config/flags.h"

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"

namespace lockstep {
namespace {

constexpr char kHelp[] = "help";
constexpr char kShortHelp[] = "h";
constexpr char kVersionFlag[] = "version";

std::string Shown(absl::string_view text) { return absl::CHexEscape(text.substr(0, 300)); }

// The program's own, by name: absl's libraries may bring flags that nobody asked for.
std::map<std::string, absl::CommandLineFlag*> OwnFlags() {
  std::map<std::string, absl::CommandLineFlag*> flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (!absl::StrContains(flag->Filename(), "absl/")) flags.emplace(std::string(name), flag);
  }
  return flags;
}

absl::CommandLineFlag* Find(absl::string_view name) {
  const auto flags = OwnFlags();
  const auto found = flags.find(std::string(name));
  return found == flags.end() ? nullptr : found->second;
}

absl::Status UnknownFlag(absl::string_view name) {
  std::vector<std::string> known = {kHelp, kVersionFlag};
  for (const auto& [own, flag] : OwnFlags()) known.push_back(own);
  const std::string nearest = Nearest(name, known);
  return UsageError(
      absl::StrCat("--", Shown(name), ": unknown flag",
                   nearest.empty() ? "" : absl::StrCat("; did you mean --", nearest, "?"),
                   nearest.empty() ? ". Remedy: see --help" : " Remedy: see --help"));
}

template <typename T>
bool Holds(const absl::CommandLineFlag& flag) {
  return flag.IsOfType<T>() || flag.IsOfType<std::optional<T>>();
}

std::string Expected(const absl::CommandLineFlag& flag) {
  if (flag.IsOfType<bool>()) return "true or false";
  if (Holds<int32_t>(flag) || Holds<int64_t>(flag)) return "a whole number";
  if (Holds<uint32_t>(flag) || Holds<uint64_t>(flag)) return "a whole number from 0 on";
  if (Holds<double>(flag) || Holds<float>(flag)) return "a number";
  if (Holds<absl::Duration>(flag)) return "a duration such as 50ms";
  return "another value";
}

absl::Status SetFlag(absl::CommandLineFlag* flag, absl::string_view value) {
  std::string why;
  if (flag->ParseFrom(value, &why)) return absl::OkStatus();
  return UsageError(absl::StrCat("--", flag->Name(), ": expected ", Expected(*flag), ", got \"",
                                 Shown(value), "\". Remedy: see --help"));
}

// "--name" or "--name=value" without the dashes; whether it was a flag at all.
bool StripDashes(absl::string_view* argument) {
  return (absl::ConsumePrefix(argument, "--") || absl::ConsumePrefix(argument, "-")) &&
         !argument->empty();
}

std::string FlagList() {
  std::string list = "\nFlags:\n";
  for (const auto& [name, flag] : OwnFlags()) {
    const std::string value = flag->DefaultValue();
    absl::StrAppend(&list, "  --", name, "  ", flag->Help(),
                    value.empty() ? "" : absl::StrCat(" (default: ", value, ")"), "\n");
  }
  absl::StrAppend(&list, "  --help  this text\n  --version  the version\n");
  return list;
}

}  // namespace

absl::Status SetFlags(absl::Span<const char* const> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view name = arguments[i];
    if (!StripDashes(&name)) {
      return UsageError(absl::StrCat("\"", Shown(arguments[i]), "\": expected a flag --name=value",
                                     ". Remedy: see --help"));
    }
    const size_t equals = name.find('=');
    absl::CommandLineFlag* flag = Find(name.substr(0, equals));
    if (flag != nullptr && equals != absl::string_view::npos) {
      LOCKSTEP_RETURN_IF_ERROR(SetFlag(flag, name.substr(equals + 1)));
    } else if (flag != nullptr && flag->IsOfType<bool>()) {
      LOCKSTEP_RETURN_IF_ERROR(SetFlag(flag, "true"));
    } else if (flag != nullptr) {
      if (i + 1 == arguments.size() || absl::StartsWith(arguments[i + 1], "--")) {
        return UsageError(absl::StrCat("--", flag->Name(), ": expected a value, got none. Remedy: ",
                                       "--", flag->Name(), "=value"));
      }
      LOCKSTEP_RETURN_IF_ERROR(SetFlag(flag, arguments[++i]));
    } else {
      absl::string_view positive = name;
      absl::CommandLineFlag* negated =
          absl::ConsumePrefix(&positive, "no") ? Find(positive) : nullptr;
      if (negated == nullptr || !negated->IsOfType<bool>()) {
        return UnknownFlag(name.substr(0, equals));
      }
      LOCKSTEP_RETURN_IF_ERROR(SetFlag(negated, "false"));
    }
  }
  return absl::OkStatus();
}

FlagsResult ParseFlags(absl::string_view program, absl::string_view usage,
                       absl::Span<const char* const> arguments) {
  FlagsResult result;
  for (absl::string_view argument : arguments) {
    if (!StripDashes(&argument)) continue;
    if (argument == kHelp || argument == kShortHelp) {
      return {true, ExitCode::kDone, absl::StrCat(usage, FlagList())};
    }
    if (argument == kVersionFlag) {
      return {true, ExitCode::kDone, absl::StrCat(program, " ", kVersion, "\n")};
    }
  }
  if (const absl::Status status = SetFlags(arguments); !status.ok()) {
    return {true, ExitCodeFor(status), "", absl::StrCat(program, ": ", status.message(), "\n")};
  }
  return result;
}

FlagsResult HandleFlags(absl::string_view program, absl::string_view usage, int argc,
                        const char* const* argv) {
  const size_t count = argc > 0 ? argc - 1 : 0;
  FlagsResult result = ParseFlags(program, usage, absl::MakeConstSpan(argv + 1, count));
  std::fputs(result.output.c_str(), stdout);
  std::fputs(result.error.c_str(), stderr);
  return result;
}

}  // namespace lockstep
