// Signs the certificates of a job's processes, for users who have no authority of their own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/security/caller.h"

namespace lockstep::deploy {

// In the authority's folder.
inline constexpr char kAuthorityFile[] = "ca.pem";  // its certificate
inline constexpr char kAuthorityKeyFile[] = "ca.key";

// Of one thread.
class CertificateAuthority {
 public:
  // The authority of `folder`; makes it, for `job`, where there is none. An empty `job` is that of
  // the authority, and "lockstep" for a new one. INVALID_ARGUMENT: the files do not hold it; its
  // key is missing; it is of another job. Errors of reading and writing files.
  static absl::StatusOr<std::unique_ptr<CertificateAuthority>> Open(const std::string& folder,
                                                                    absl::string_view job);
  virtual ~CertificateAuthority() = default;

  virtual const std::string& job() const = 0;

  // Writes a new key and its certificate of the job to `path`, mode 0600. An existing file is
  // replaced by a rename: a process that reads it meanwhile finds the old pair or the new one.
  // `hosts`: where the process serves, names or IP addresses; none: it serves nobody.
  virtual absl::Status Issue(const security::Caller& caller, const std::vector<std::string>& hosts,
                             absl::Duration validity, const std::string& path) = 0;
};

}  // namespace lockstep::deploy
