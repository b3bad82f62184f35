#include "common/checkpoint/owner.h"

#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/folder.h"
#include "common/checkpoint/history.h"
#include "common/checkpoint/json_checksum.h"
#include "common/checkpoint/json_fields.h"
#include "common/checkpoint/strict_json.h"
#include "common/fs/folder.h"
#include "common/fs/input_file.h"
#include "common/fs/path.h"

namespace lockstep {
namespace {

constexpr int kOwnerDepth = 2;  // owner, origin
constexpr char kOwnerChecksum[] = "owner_crc32c";

}  // namespace

std::string EncodeOwner(const FolderOwner& owner) {
  nlohmann::json json = {{"job", owner.job},
                         {"epoch", owner.epoch},
                         {"term", owner.term},
                         {"chief", owner.chief},
                         {"host", owner.host},
                         {"pid", owner.pid},
                         {"origin", OriginToJson(owner.origin)}};
  if (!owner.source.empty()) json["source"] = owner.source;
  if (owner.is_fresh) json["fresh"] = true;
  AddChecksum(kOwnerChecksum, &json);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

absl::StatusOr<FolderOwner> DecodeOwner(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(nlohmann::json json, ParseStrictJson(text, kOwnerDepth));
  // An earlier build has written none. Without one, a bit that flips could make the owner another
  // job, and end this one.
  if (json.contains(kOwnerChecksum)) {
    LOCKSTEP_RETURN_IF_ERROR(TakeChecksum(kOwnerChecksum, &json));
  }
  FolderOwner owner;
  JsonFields fields(json, "");
  fields.Read("job", owner.job);
  fields.Read("epoch", owner.epoch);
  fields.Read("term", owner.term);
  fields.Read("chief", owner.chief);
  fields.Read("host", owner.host);
  fields.Read("pid", owner.pid);
  fields.ReadObject("origin", [&](const nlohmann::json& origin, const std::string& place) {
    return OriginFromJson(origin, place, &owner.origin);
  });
  if (json.contains("source")) fields.Read("source", owner.source);
  if (json.contains("fresh")) fields.Read("fresh", owner.is_fresh);
  LOCKSTEP_RETURN_IF_ERROR(fields.Finish());
  return owner;
}

absl::StatusOr<std::optional<FolderOwner>> ReadOwner(const std::string& root) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_folder, FindFolder(root));
  if (!has_folder) return std::nullopt;
  const std::string path = JoinPath(root, kOwnerFile);
  const absl::StatusOr<std::string> text = ReadFile(path, kLargestOwner);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  absl::StatusOr<FolderOwner> owner = text.ok() ? DecodeOwner(*text) : text.status();
  if (owner.ok()) return *std::move(owner);
  const bool is_content =
      absl::IsDataLoss(owner.status()) || absl::IsInvalidArgument(owner.status());
  if (!is_content) return owner.status();
  return absl::DataLossError(
      absl::StrCat(path, ": ", owner.status().message(),
                   ". Remedy: remove it, once no other job uses this checkpoint folder"));
}

absl::Status WriteOwner(const std::string& root, const FolderOwner& owner,
                        const PublishCheck& check) {
  return WriteFileAtomically(JoinPath(root, kOwnerFile), EncodeOwner(owner), check);
}

absl::StatusOr<std::string> FindSource(const std::string& root) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<FolderOwner> owner, ReadOwner(root));
  if (!owner.has_value() || owner->source.empty()) return "";
  absl::Status unread;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<HistoryPoint> points,
                            ReadHistoryPoints(root, &unread));
  if (HasSavedSince(points, owner->epoch)) return "";
  // The owner's own checkpoint may be among those that the disk does not show.
  LOCKSTEP_RETURN_IF_ERROR(unread);
  return owner->source;
}

std::string Describe(const FolderOwner& owner) {
  return absl::StrCat("job ", absl::Hex(owner.job), " (epoch ", owner.epoch, ", term ", owner.term,
                      "; its chief is process ", owner.pid, " on host ",
                      absl::CEscape(owner.host.substr(0, 80)), ")");
}

absl::Status CheckShardWriter(const std::string& checkpoint, uint64_t job, uint64_t epoch,
                              uint64_t term) {
  const std::string root = FolderOf(checkpoint);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<FolderOwner> owner, ReadOwner(root));
  if (!owner.has_value()) return absl::OkStatus();
  const bool is_late = std::tie(owner->epoch, owner->term) > std::tie(epoch, term);
  if (owner->job == job && !is_late) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(root, " belongs to ", Describe(*owner), ": job ",
                                         absl::Hex(job), " writes there no more in epoch ", epoch,
                                         ", term ", term));
}

}  // namespace lockstep
