// Files of a checkpoint folder.
#include <cstddef>
#include <vector>

#include "common/base/check.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/owner.h"
#include "common/checkpoint/safetensors_file.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {
namespace {

void DecodesManifest(absl::string_view input) {
  const absl::StatusOr<Manifest> manifest = DecodeManifest(input);
  CheckMessage(manifest.status());
  // What is accepted is written as it was read.
  if (manifest.ok()) LOCKSTEP_CHECK(DecodeManifest(EncodeManifest(*manifest)).ok());
}

void DecodesOwner(absl::string_view input) {
  const absl::StatusOr<FolderOwner> owner = DecodeOwner(input);
  CheckMessage(owner.status());
  if (owner.ok()) LOCKSTEP_CHECK(*DecodeOwner(EncodeOwner(*owner)) == *owner);
}

void ReadsSafetensors(absl::string_view input) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(FileWith(input));
  CheckMessage(file.status());
  if (!file.ok()) return;
  for (const SafetensorsEntry& entry : file->entries()) {
    // The file has as many bytes, so this is not much.
    std::vector<std::byte> value(entry.end - entry.begin);
    CheckMessage(file->Read(entry, value).status());
    CheckMessage(file->Checksum(entry).status());
  }
}

const Target kManifest("manifest", DecodesManifest);
const Target kOwner("owner", DecodesOwner);
const Target kSafetensors("safetensors", ReadsSafetensors);

}  // namespace
}  // namespace lockstep::fuzz
