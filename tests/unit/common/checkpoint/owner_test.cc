#include "common/checkpoint/owner.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using test::TemporaryFolder;

const FolderOwner kOwner{.job = UINT64_MAX,
                         .epoch = 2,
                         .term = 5,
                         .chief = UINT64_MAX - 1,
                         .host = "a",
                         .pid = 41,
                         .origin = {.epoch = 1, .step = 500}};

TEST_CASE("an owner comes back as it was written, and names itself") {
  const TemporaryFolder root;
  CHECK(*ReadOwner(root.path()) == std::nullopt);
  CHECK(*ReadOwner(root.Path("absent")) == std::nullopt);
  REQUIRE(WriteOwner(root.path(), kOwner, nullptr).ok());
  CHECK(*ReadOwner(root.path()) == kOwner);
  CHECK(Describe(kOwner) ==
        "job ffffffffffffffff (epoch 2, term 5; its chief is process 41 on host a)");
  const auto refuse = [] { return absl::AbortedError("fenced"); };
  CHECK(WriteOwner(root.path(), {}, refuse) == absl::AbortedError("fenced"));
  CHECK(*ReadOwner(root.path()) == kOwner);
  FolderOwner restored = kOwner;
  restored.source = "/" + std::string(4095, '\x01');  // six bytes each in JSON
  REQUIRE(WriteOwner(root.path(), restored, nullptr).ok());
  CHECK(*ReadOwner(root.path()) == restored);
  FolderOwner fresh = kOwner;
  fresh.is_fresh = true;
  REQUIRE(WriteOwner(root.path(), fresh, nullptr).ok());
  CHECK(*ReadOwner(root.path()) == fresh);
}

TEST_CASE("an owner that cannot be read is DATA_LOSS with the file and the remedy") {
  const TemporaryFolder root;
  const std::string text = EncodeOwner(kOwner);
  for (const std::string& wrong :
       {std::string(), std::string("{}"), std::string("[]"), text + "x",
        std::string(kLargestOwner + 1, ' '), absl::StrReplaceAll(text, {{"\"term\"", "\"turm\""}}),
        absl::StrReplaceAll(text, {{"41", "-41"}}), absl::StrReplaceAll(text, {{"500", "\"\""}})}) {
    CAPTURE(wrong);
    root.Write("OWNER.json", wrong);
    const absl::Status status = ReadOwner(root.path()).status();
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    CHECK(absl::StrContains(status.message(), root.Path("OWNER.json")));
    CHECK(absl::StrContains(status.message(), "Remedy: "));
  }
}

TEST_CASE("a ps writes for the job that owns the folder, and for no earlier epoch or term of it") {
  const TemporaryFolder root;
  const std::string checkpoint = root.Path("ckpt-5");
  CHECK(CheckShardWriter(checkpoint, 1, 1, 1).ok());
  CHECK(CheckShardWriter(root.Path("absent/ckpt-5"), 1, 1, 1).ok());
  REQUIRE(WriteOwner(root.path(), kOwner, nullptr).ok());
  CHECK(CheckShardWriter(checkpoint, kOwner.job, 2, 5).ok());
  CHECK(CheckShardWriter(checkpoint, kOwner.job, 2, 6).ok());
  CHECK(CheckShardWriter(checkpoint, kOwner.job, 3, 1).ok());
  for (const absl::Status& status :
       {CheckShardWriter(checkpoint, kOwner.job, 2, 4),
        CheckShardWriter(checkpoint, kOwner.job, 1, 9), CheckShardWriter(checkpoint, 7, 3, 9)}) {
    CHECK(status.code() == absl::StatusCode::kAborted);
    CHECK(absl::StrContains(status.message(), Describe(kOwner)));
  }
}

}  // namespace
}  // namespace lockstep
