#include "tests/oracle/script.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/dataset/byte_source.h"

namespace lockstep::oracle {
namespace {

constexpr size_t kPiece = 1 << 16;

bool IsList(const std::string& name) {
  return absl::EndsWith(name, ".jsonl") || absl::EndsWith(name, ".jsonl.gz");
}

absl::StatusOr<std::vector<std::string>> ListFiles(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (IsList(name) || absl::EndsWith(name, ".json")) names.push_back(name);
  }
  if (names.empty()) {
    return absl::NotFoundError(absl::StrCat(
        folder, ": expected scripts (*.json, *.jsonl, *.jsonl.gz), got ",
        error ? error.message() : "none", ". Remedy: tests/oracle/record.py writes some"));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, ByteSource::Open(path));
  std::string text;
  while (true) {
    const size_t before = text.size();
    text.resize(before + kPiece);
    LOCKSTEP_ASSIGN_OR_RETURN(
        const size_t got,
        source->Read(absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()) + before, kPiece)));
    text.resize(before + got);
    if (got < kPiece) return text;
  }
}

// Empty where there is no such text.
std::string TextIn(const nlohmann::json& content, const char* field) {
  const auto found = content.find(field);
  return found != content.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string AboutOf(const std::string& kind, const nlohmann::json& content) {
  std::string about = kind;
  if (const std::string optimizer = TextIn(content, "optimizer"); !optimizer.empty()) {
    absl::StrAppend(&about, " ", optimizer);
  }
  if (const auto sparse = content.find("sparse"); sparse != content.end()) {
    absl::StrAppend(&about, *sparse == true ? " sparse" : " dense");
  }
  return about;
}

absl::Status Append(const std::string& place, const std::string& text,
                    std::vector<Script>* scripts) {
  nlohmann::json content = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!content.is_object()) {
    return absl::DataLossError(
        absl::StrCat(place, ": expected a JSON object, got ",
                     content.is_discarded() ? "something that is not JSON" : content.type_name()));
  }
  const std::string name = TextIn(content, "name");
  Script script{.place = name.empty() ? place : absl::StrCat(place, " (", name, ")"),
                .kind = TextIn(content, "kind")};
  script.about = AboutOf(script.kind, content);
  script.content = std::move(content);
  scripts->push_back(std::move(script));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Script>> ReadScripts(const std::string& folder) {
  std::vector<Script> scripts;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFiles(folder));
  for (const std::string& name : names) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadAll(absl::StrCat(folder, "/", name)));
    if (!IsList(name)) {
      LOCKSTEP_RETURN_IF_ERROR(Append(name, text, &scripts));
      continue;
    }
    int number = 0;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number;
      if (line.empty()) continue;
      LOCKSTEP_RETURN_IF_ERROR(
          Append(absl::StrCat(name, ":", number), std::string(line), &scripts));
    }
  }
  return scripts;
}

}  // namespace lockstep::oracle
