#include "tests/chaos/job_credentials.h"

#include <cstdlib>

#include "common/security/job_token.h"
#include "common/security/secret_file.h"

namespace lockstep::test {

std::shared_ptr<const rpc::Credentials> NewToken(const std::string& path) {
  if (!security::WriteSecret(path, security::JobToken::NewText()).ok()) std::abort();
  return rpc::MakeToolCredentials(path).value();
}

}  // namespace lockstep::test
