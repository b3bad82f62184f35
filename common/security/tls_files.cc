#include "common/security/tls_files.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/remedy.h"
#include "common/base/status_macros.h"
#include "common/fs/input_file.h"
#include "common/security/openssl_objects.h"
#include "common/security/secret_file.h"

namespace lockstep::security {
namespace {

constexpr size_t kMostPemBytes = size_t{1} << 20;

absl::Status Wrong(const std::string& path, absl::string_view what, absl::string_view remedy) {
  ERR_clear_error();  // of this thread: gRPC would read it as its own
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what, ". Remedy: ", remedy));
}

// Every certificate in the text, in order. INVALID_ARGUMENT: none.
absl::StatusOr<std::vector<X509Pointer>> ParseCertificates(const std::string& path,
                                                           const std::string& text) {
  std::vector<X509Pointer> certificates;
  const BioPointer bio = ReaderOf(text);
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(next);
  }
  ERR_clear_error();  // the end of the file is one
  if (certificates.empty()) {
    return Wrong(path, "holds no certificate",
                 "a PEM file with -----BEGIN CERTIFICATE----- (docs/security.md)");
  }
  return certificates;
}

absl::StatusOr<std::vector<X509Pointer>> ReadCertificates(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, kMostPemBytes);
  if (!text.ok()) {
    return AddRemedy(text.status(), "name a PEM file that exists and that this user may read");
  }
  return ParseCertificates(path, *text);
}

// Without a terminal there is nobody to ask for the passphrase of a key.
int NoPassphrase(char*, int, int, void*) { return -1; }

absl::Status CheckKey(const std::string& path, X509* certificate, const std::string& of) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadSecret(path, kMostPemBytes));
  const KeyPointer key(
      PEM_read_bio_PrivateKey(ReaderOf(text).get(), nullptr, NoPassphrase, nullptr));
  if (key == nullptr) {
    return Wrong(path, "holds no private key, or one with a passphrase",
                 "a PEM file with -----BEGIN PRIVATE KEY-----, unencrypted, mode 0600");
  }
  if (X509_check_private_key(certificate, key.get()) != 1) {
    return Wrong(path, absl::StrCat("is not the key of the certificate in ", of),
                 "the certificate and the key that were made together");
  }
  return absl::OkStatus();
}

absl::Status Verify(const std::vector<X509Pointer>& own, const TlsFiles& files,
                    const std::vector<X509Pointer>& authorities, int purpose) {
  const StorePointer store(X509_STORE_new());
  for (const X509Pointer& authority : authorities)
    X509_STORE_add_cert(store.get(), authority.get());
  STACK_OF(X509)* const chain = sk_X509_new_null();
  for (size_t i = 1; i < own.size(); ++i) sk_X509_push(chain, own[i].get());
  const StoreContextPointer context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), own[0].get(), chain);
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  const bool is_good = X509_verify_cert(context.get()) == 1;
  const char* const reason = X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
  sk_X509_free(chain);
  if (is_good) return absl::OkStatus();
  return Wrong(files.certificate, absl::StrCat("others would refuse it: ", reason),
               absl::StrCat("a valid certificate, signed by an authority in ", files.authorities));
}

std::vector<std::string> UrisOf(const X509* certificate) {
  std::vector<std::string> uris;
  const NamesPointer names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  return uris;
}

absl::Time EndOf(const X509* certificate) {
  std::tm time = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) != 1) return absl::InfinitePast();
  return absl::FromTM(time, absl::UTCTimeZone());
}

}  // namespace

absl::StatusOr<Certificate> CheckTlsFiles(const TlsFiles& files, const CertificateUse& use) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto own, ReadCertificates(files.certificate));
  LOCKSTEP_RETURN_IF_ERROR(CheckKey(files.key_file(), own[0].get(), files.certificate));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto authorities, ReadCertificates(files.authorities));
  if (use.in_calls) {
    LOCKSTEP_RETURN_IF_ERROR(Verify(own, files, authorities, X509_PURPOSE_SSL_CLIENT));
  }
  if (use.serving) {
    LOCKSTEP_RETURN_IF_ERROR(Verify(own, files, authorities, X509_PURPOSE_SSL_SERVER));
  }
  return Certificate{UrisOf(own[0].get()), EndOf(own[0].get())};
}

absl::Status CheckAuthorities(const std::string& path) { return ReadCertificates(path).status(); }

}  // namespace lockstep::security
