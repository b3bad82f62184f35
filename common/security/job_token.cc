#include "common/security/job_token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lockstep::security {
namespace {

constexpr absl::string_view kPrefix = "job:";
constexpr size_t kSecretBytes = 32;

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isxdigit(c); });
}

}  // namespace

bool SameSecret(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

absl::StatusOr<JobToken> JobToken::Parse(absl::string_view text) {
  absl::string_view digits = absl::StripAsciiWhitespace(text);
  if (!absl::ConsumePrefix(&digits, kPrefix) || digits.size() != 2 * kSecretBytes ||
      !IsHex(digits)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected \"", kPrefix, "\" and ", 2 * kSecretBytes,
                     " hexadecimal digits. Remedy: ./lockstep token FILE makes one"));
  }
  return JobToken(absl::HexStringToBytes(digits));
}

std::string JobToken::NewText() {
  std::array<char, kSecretBytes> secret;
  size_t filled = 0;
  while (filled < secret.size()) {
    // Without flags it waits for the generator's first seed, and fails for a signal alone.
    const ssize_t got = ::getrandom(secret.data() + filled, secret.size() - filled, 0);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return absl::StrCat(
      kPrefix, absl::BytesToHexString(absl::string_view(secret.data(), secret.size())), "\n");
}

std::string JobToken::CredentialFor(const Caller& caller) const {
  const std::string name = ToString(caller);
  std::array<unsigned char, EVP_MAX_MD_SIZE> code;
  unsigned size = 0;
  ::HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
         reinterpret_cast<const unsigned char*>(name.data()), name.size(), code.data(), &size);
  return absl::StrCat(
      name, ":",
      absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(code.data()), size)));
}

absl::StatusOr<Caller> JobToken::Verify(absl::string_view credential) const {
  const std::optional<Caller> caller = ParseCaller(credential.substr(0, credential.find(':')));
  if (caller.has_value()) {
    const std::string expected = CredentialFor(*caller);
    if (SameSecret(credential, expected)) return *caller;
  }
  return absl::UnauthenticatedError(
      "the credential is none of this job's. Remedy: give every process of the job the same "
      "--token_file");
}

}  // namespace lockstep::security
