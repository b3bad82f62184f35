#include "common/security/token_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/security/secret_file.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::security {
namespace {

const Caller kChief{.role = CallerRole::kChief};

TEST_CASE("A secret is written for its owner alone, and over nothing") {
  const test::TemporaryFolder folder;
  const std::string path = folder.Path("token");
  const std::string text = JobToken::NewText();
  REQUIRE(WriteSecret(path, text).ok());
  struct stat info;
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  const absl::Status taken = WriteSecret(path, JobToken::NewText());
  CHECK(ExitCodeFor(taken) == ExitCode::kCannotCreate);
  CHECK(absl::StrContains(taken.message(), "Remedy: choose another name, or remove the file"));
  const absl::Status nowhere = WriteSecret(folder.Path("no/token"), JobToken::NewText());
  CHECK(ExitCodeFor(nowhere) == ExitCode::kCannotCreate);
  CHECK(absl::StrContains(nowhere.message(), "Remedy: name a file in a folder"));
  CHECK(folder.Read("token") == text);
  REQUIRE(::symlink(path.c_str(), folder.Path("link").c_str()) == 0);
  CHECK_FALSE(WriteSecret(folder.Path("link"), JobToken::NewText()).ok());
}

TEST_CASE("A secret that cannot be written leaves its name free") {
  const test::TemporaryFolder folder;
  const std::string path = folder.Path("token");
  absl::Status failed;
  {
    const test::FileSizeLimit full(0);
    failed = WriteSecret(path, JobToken::NewText());
  }
  CHECK_FALSE(failed.ok());
  CHECK(WriteSecret(path, JobToken::NewText()).ok());
}

TEST_CASE("A token that others may use is refused") {
  const test::TemporaryFolder folder;
  const std::string path = folder.Path("token");
  REQUIRE(WriteSecret(path, JobToken::NewText()).ok());
  for (const mode_t mode : {0640, 0604, 0660, 0601, 0644}) {
    CAPTURE(mode);
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    const absl::Status status = ReadJobToken(path).status();
    CHECK(absl::IsPermissionDenied(status));
    CHECK(ExitCodeFor(status) == ExitCode::kNotPermitted);
    CHECK(absl::EndsWith(status.message(), absl::StrCat("Remedy: chmod 600 ", path)));
  }
  REQUIRE(::chmod(path.c_str(), 0400) == 0);
  CHECK(ReadJobToken(path).ok());
}

TEST_CASE("A process that serves needs the token, one that asks may have a credential alone") {
  const test::TemporaryFolder folder;
  const std::string job = folder.Path("job");
  REQUIRE(WriteSecret(job, JobToken::NewText()).ok());
  const JobToken token = ReadJobToken(job).value();
  CHECK(ReadCredential(job, kChief).value() == token.CredentialFor(kChief));

  for (const CallerRole role : {CallerRole::kReader, CallerRole::kOperator}) {
    const std::string credential = token.CredentialFor({.role = role});
    const std::string path = folder.Path(ToString({.role = role}));
    REQUIRE(WriteSecret(path, credential + "\n").ok());
    CHECK(ReadCredential(path, kChief).value() == credential);
    const absl::Status status = ReadJobToken(path).status();
    CHECK(ExitCodeFor(status) == ExitCode::kBadConfiguration);
    CHECK(absl::StartsWith(status.message(), path));
  }
}

TEST_CASE("A token file that is missing or no file is named") {
  const test::TemporaryFolder folder;
  const absl::Status missing = ReadJobToken(folder.Path("none")).status();
  CHECK(ExitCodeFor(missing) == ExitCode::kInputNotFound);
  CHECK(absl::StartsWith(missing.message(), folder.Path("none")));
  CHECK(absl::EndsWith(missing.message(),
                       "Remedy: name a file that exists and that this user may read"));
  REQUIRE(::mkfifo(folder.Path("pipe").c_str(), 0600) == 0);
  CHECK_FALSE(ReadJobToken(folder.Path("pipe")).ok());
}

}  // namespace
}  // namespace lockstep::security
