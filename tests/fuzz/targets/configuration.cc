// What users and launchers write: cluster specs, TF_CONFIG, jobs, models, reductions.
#include <string>

#include "common/base/check.h"
#include "common/config/cluster_json.h"
#include "common/config/cluster_reader.h"
#include "common/config/job.h"
#include "common/config/job_defaults.h"
#include "common/config/job_rules.h"
#include "common/config/text_proto.h"
#include "common/model/graph.h"
#include "common/reduction/all_reduce_spec.h"
#include "common/security/role_uri.h"
#include "common/security/tls_files.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {
namespace {

void ParsesClusterJson(absl::string_view input) { CheckMessage(ParseClusterJson(input).status()); }

void ReadsClusterFile(absl::string_view input) {
  CheckMessage(ReadClusterFile(FileWith(input)).status());
}

void ReadsTfConfig(absl::string_view input) {
  CheckMessage(ReadTfConfig(std::string(input)).status());
}

// A job that is accepted is complete for any number of workers that it fits.
void ReadsJob(absl::string_view input) {
  JobDef job;
  if (const absl::Status parsed = ParseTextProto("job", std::string(input), &job); !parsed.ok()) {
    return CheckMessage(parsed);
  }
  const absl::Status status = CheckJob(job);
  CheckMessage(status);
  if (!status.ok()) return;
  FillJobDefaults("/folder/job.textproto", &job);
  for (const int64_t workers : {1, 2, 7}) {
    JobDef of_workers = job;
    CheckMessage(ValidateJob(&of_workers, workers));
  }
}

void BuildsModel(absl::string_view input) {
  ModelDef model;
  const absl::Status parsed = ParseTextProto("model", std::string(input), &model);
  CheckMessage(parsed);
  if (parsed.ok()) CheckMessage(ModelGraph::Build(model).status());
}

void ParsesAllReduceSpec(absl::string_view input) {
  const absl::StatusOr<AllReduceSpec> spec = AllReduceSpec::Parse(input);
  CheckMessage(spec.status());
  if (spec.ok()) LOCKSTEP_CHECK(*AllReduceSpec::Parse(spec->ToString()) == *spec);
}

// A role in a peer's certificate has one way of writing.
void ReadsRole(absl::string_view input) {
  const absl::StatusOr<security::RoleUri> role = security::RoleOf({std::string(input)});
  CheckMessage(role.status());
  if (role.ok()) LOCKSTEP_CHECK(ToString(*role) == input);
}

void ReadsCertificate(absl::string_view input) {
  CheckMessage(security::CheckAuthorities(FileWith(input)));
}

const Target kClusterJson("cluster_json", ParsesClusterJson);
const Target kClusterFile("cluster_file", ReadsClusterFile);
const Target kTfConfig("tf_config", ReadsTfConfig);
const Target kRole("tls_role", ReadsRole);
const Target kCertificate("tls_certificate", ReadsCertificate);
const Target kJob("job", ReadsJob);
const Target kModel("model", BuildsModel);
const Target kAllReduceSpec("all_reduce_spec", ParsesAllReduceSpec);

}  // namespace
}  // namespace lockstep::fuzz
