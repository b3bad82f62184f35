// A certificate as public authorities issue it: for servers, and not for clients.
#pragma once

#include <openssl/pem.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "common/security/openssl_objects.h"
#include "common/security/tls_files.h"
#include "tests/support/test_certificates.h"

namespace lockstep::test {

// The files that `certificates` make for `caller`, with a certificate that is signed again after
// the use by clients has been taken out of it.
inline security::TlsFiles MakeServerOnly(TestCertificates& certificates,
                                         const std::string& caller) {
  const security::TlsFiles files = certificates.Make(caller);
  const std::string name = std::filesystem::path(files.certificate).filename();
  const std::string text = certificates.folder().Read(name);
  const std::string authority = certificates.folder().Read("ca.key");
  const security::X509Pointer certificate(
      PEM_read_bio_X509(security::ReaderOf(text).get(), nullptr, nullptr, nullptr));
  const security::KeyPointer signer(
      PEM_read_bio_PrivateKey(security::ReaderOf(authority).get(), nullptr, nullptr, nullptr));
  REQUIRE((certificate != nullptr && signer != nullptr));
  const int place = X509_get_ext_by_NID(certificate.get(), NID_ext_key_usage, -1);
  REQUIRE(place >= 0);
  security::ExtensionPointer(X509_delete_ext(certificate.get(), place));
  const security::ExtensionPointer use(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_ext_key_usage, "serverAuth"));
  REQUIRE(X509_add_ext(certificate.get(), use.get(), -1) == 1);
  REQUIRE(X509_sign(certificate.get(), signer.get(), EVP_sha256()) > 0);
  const security::BioPointer bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate.get());
  char* data = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(bio.get(), &data));
  const size_t own_key = text.find("-----BEGIN CERTIFICATE-----");  // comes first
  certificates.folder().Write(name, text.substr(0, own_key) + std::string(data, size));
  return files;
}

}  // namespace lockstep::test
