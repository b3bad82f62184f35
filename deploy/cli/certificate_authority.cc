#include "deploy/cli/certificate_authority.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/fs/fs_error.h"
#include "common/fs/input_file.h"
#include "common/fs/path.h"
#include "common/security/openssl_objects.h"
#include "common/security/role_uri.h"
#include "common/security/secret_file.h"

namespace lockstep::deploy {
namespace {

constexpr size_t kMostBytes = 64 << 10;
constexpr size_t kMostNameBytes = 256;
constexpr absl::string_view kDefaultJob = "lockstep";
// Of the common names of all certificates.
constexpr absl::string_view kNamePrefix = "lockstep ";
constexpr absl::Duration kAuthorityValidity = absl::Hours(24 * 3650);
// Clocks of hosts differ.
constexpr absl::Duration kBefore = absl::Minutes(10);

using security::BioPointer;
using security::Caller;
using security::KeyPointer;
using security::RoleUri;
using security::X509Pointer;

absl::Status OpenSslError(absl::string_view what) {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof(text));
  return absl::InternalError(absl::StrCat("OpenSSL cannot ", what, ": ", text));
}

struct ExtensionText {
  int nid;
  std::string value;  // in the words of OpenSSL's configuration files
};

absl::Status Extend(X509* certificate, X509* issuer, absl::Span<const ExtensionText> extensions) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const ExtensionText& one : extensions) {
    const security::ExtensionPointer extension(
        X509V3_EXT_conf_nid(nullptr, &context, one.nid, one.value.c_str()));
    if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
      return OpenSslError(absl::StrCat("make the extension ", one.value));
    }
  }
  return absl::OkStatus();
}

// Without issuer and signature.
X509Pointer NewCertificate(EVP_PKEY* key, const std::string& common_name, absl::Duration validity) {
  X509Pointer certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  uint64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial >> 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -absl::ToInt64Seconds(kBefore));
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), absl::ToInt64Seconds(validity));
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  X509_set_pubkey(certificate.get(), key);
  return certificate;
}

std::string TextOf(const BioPointer& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);  // NOLINT(google-runtime-int): OpenSSL's
  return {data, static_cast<size_t>(size)};
}

std::string KeyText(EVP_PKEY* key) {
  const BioPointer bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return TextOf(bio);
}

std::string CertificateText(X509* certificate) {
  const BioPointer bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate);
  return TextOf(bio);
}

absl::Status Replace(const std::string& path, const std::string& text) {
  const std::string next = path + ".new";
  ::unlink(next.c_str());  // of one that was killed
  LOCKSTEP_RETURN_IF_ERROR(security::WriteSecret(next, text));
  if (std::rename(next.c_str(), path.c_str()) != 0) return WriteError(path, "replace", errno);
  return absl::OkStatus();
}

// Of a host's name or address, as OpenSSL writes them.
std::string HostName(const std::string& host) {
  in6_addr address;
  const bool is_ip = ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
                     ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
  return absl::StrCat(is_ip ? "IP:" : "DNS:", host);
}

class OpenSslAuthority final : public CertificateAuthority {
 public:
  OpenSslAuthority(KeyPointer key, X509Pointer certificate, absl::string_view job)
      : key_(std::move(key)), certificate_(std::move(certificate)), job_(job) {}

  const std::string& job() const override { return job_; }

  absl::Status Issue(const Caller& caller, const std::vector<std::string>& hosts,
                     absl::Duration validity, const std::string& path) override {
    std::string names = absl::StrCat("URI:", ToString(RoleUri{job_, caller}));
    for (const std::string& host : hosts) absl::StrAppend(&names, ",", HostName(host));
    const KeyPointer key(EVP_EC_gen("P-256"));
    const X509Pointer certificate =
        NewCertificate(key.get(), absl::StrCat(kNamePrefix, ToString(caller)), validity);
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate_.get()));
    LOCKSTEP_RETURN_IF_ERROR(
        Extend(certificate.get(), certificate_.get(),
               {{NID_basic_constraints, "critical,CA:FALSE"},
                {NID_key_usage, "critical,digitalSignature"},
                {NID_ext_key_usage, hosts.empty() ? "clientAuth" : "serverAuth,clientAuth"},
                {NID_subject_alt_name, names},
                {NID_authority_key_identifier, "keyid"}}));
    if (X509_sign(certificate.get(), key_.get(), EVP_sha256()) == 0) {
      return OpenSslError("sign a certificate");
    }
    return Replace(path, absl::StrCat(KeyText(key.get()), CertificateText(certificate.get())));
  }

 private:
  const KeyPointer key_;
  const X509Pointer certificate_;
  const std::string job_;
};

absl::Status MakeKey(const std::string& path) {
  const KeyPointer key(EVP_EC_gen("P-256"));
  return Replace(path, KeyText(key.get()));
}

absl::Status MakeCertificate(const std::string& path, EVP_PKEY* key, absl::string_view job) {
  const X509Pointer certificate =
      NewCertificate(key, absl::StrCat(kNamePrefix, job), kAuthorityValidity);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get()));
  LOCKSTEP_RETURN_IF_ERROR(Extend(certificate.get(), certificate.get(),
                                  {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                   {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                   {NID_subject_key_identifier, "hash"}}));
  if (X509_sign(certificate.get(), key, EVP_sha256()) == 0) {
    return OpenSslError("sign the authority's certificate");
  }
  return Replace(path, CertificateText(certificate.get()));
}

// The job of MakeCertificate. Empty: another program made the certificate, or the job's name was
// longer than a common name may be.
std::string JobOf(X509* certificate) {
  char name[kMostNameBytes];
  const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                             name, sizeof(name));
  absl::string_view job(name, size > 0 ? size : 0);
  const bool is_ours = absl::ConsumePrefix(&job, kNamePrefix) && security::CheckJobName(job).ok();
  return is_ours ? std::string(job) : "";
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Certificates of another job would be refused by the processes that run.
absl::Status CheckSameJob(const std::string& path, absl::string_view own, absl::string_view job) {
  if (own.empty() || job.empty() || own == job) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": is the authority of job ", own, ", not ",
                                                 job, ". Remedy: --job_name=", own,
                                                 ", or another folder for the other job"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CertificateAuthority>> CertificateAuthority::Open(
    const std::string& folder, absl::string_view job) {
  const std::string key_path = JoinPath(folder, kAuthorityKeyFile);
  const std::string certificate_path = JoinPath(folder, kAuthorityFile);
  const bool has_certificate = Exists(certificate_path);
  if (!Exists(key_path)) {
    if (has_certificate) {
      return absl::InvalidArgumentError(
          absl::StrCat(key_path, ": the key of the authority in ", certificate_path,
                       " is not there. Remedy: put it back while this command runs, or name "
                       "another folder for a new authority"));
    }
    // First: where there is a certificate, there was a key.
    LOCKSTEP_RETURN_IF_ERROR(MakeKey(key_path));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string key_text, security::ReadSecret(key_path, kMostBytes));
  KeyPointer key(
      PEM_read_bio_PrivateKey(security::ReaderOf(key_text).get(), nullptr, nullptr, nullptr));
  if (!has_certificate && key != nullptr) {
    LOCKSTEP_RETURN_IF_ERROR(
        MakeCertificate(certificate_path, key.get(), job.empty() ? kDefaultJob : job));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadFile(certificate_path, kMostBytes));
  X509Pointer certificate(
      PEM_read_bio_X509(security::ReaderOf(text).get(), nullptr, nullptr, nullptr));
  if (key == nullptr || certificate == nullptr ||
      X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::InvalidArgumentError(absl::StrCat(key_path,
                                                   ": is not the key of the certificate in ",
                                                   certificate_path, ". Remedy: another folder"));
  }
  const std::string own = JobOf(certificate.get());
  LOCKSTEP_RETURN_IF_ERROR(CheckSameJob(certificate_path, own, job));
  if (job.empty() && own.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(certificate_path,
                     ": does not say of which job its certificates are. Remedy: "
                     "--job_name=NAME, as when they were made"));
  }
  if (job.empty()) job = own;
  return std::make_unique<OpenSslAuthority>(std::move(key), std::move(certificate), job);
}

}  // namespace lockstep::deploy
