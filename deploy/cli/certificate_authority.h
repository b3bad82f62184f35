// Signs the certificates of a job's processes, for users who have no authority of their own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/security/role_uri.h"

namespace lockstep::deploy {

// Of one thread.
class CertificateAuthority {
 public:
  // The authority whose certificate is `folder`/ca.pem and whose key `folder`/ca.key; makes both,
  // for `job`, where there is no key. INVALID_ARGUMENT: the files do not hold them. Errors of
  // reading and writing files.
  static absl::StatusOr<std::unique_ptr<CertificateAuthority>> Open(const std::string& folder,
                                                                    absl::string_view job);
  virtual ~CertificateAuthority() = default;

  // Writes `path` with a new key and its certificate, mode 0600, in place of what was there: in one
  // moment, so that a process which reads it again finds either. `hosts`: where the process serves,
  // names or IP addresses; none: it serves nobody.
  virtual absl::Status Issue(const security::RoleUri& role, const std::vector<std::string>& hosts,
                             absl::Duration validity, const std::string& path) = 0;
};

}  // namespace lockstep::deploy
