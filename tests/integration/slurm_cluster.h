// A real Slurm for one test: a controller and nodes, each node with a host and processes of its
// own. Nothing of it outlives the object. Takes the Debian packages slurmctld, slurmd and
// slurm-client.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/virtual_network.h"

namespace lockstep::test {

class SlurmCluster {
 public:
  // Nodes n1, n2, ..., idle. Moves the calling process into a network of its own, so there is one
  // object in a process, made before any thread is. Fails the test case where that is not
  // permitted or Slurm is not there.
  explicit SlurmCluster(int num_nodes);

  // What a command of Slurm prints, without the last end of line. Fails the test case unless it
  // exits with 0. `environment`: "NAME=value", added.
  std::string Run(std::vector<std::string> command, std::vector<std::string> environment = {});
  // A field of a job: "JobState", "NodeList".
  std::string JobField(const std::string& job, const std::string& field);
  // Fails the test case when it does not get this value before `patience`.
  void AwaitJobField(const std::string& job, const std::string& field, const std::string& value,
                     absl::Duration patience);

  // Kills the node with all its processes: "n1".
  void KillNode(const std::string& node);

  // Of the controller and the nodes, for a failing test.
  std::string Logs();

 private:
  void WriteConfiguration(int num_nodes) const;
  // The command that runs `command` as the user of Slurm.
  std::vector<std::string> AsUser(std::vector<std::string> command) const;
  std::unique_ptr<Process> StartNode(int node) const;

  TemporaryFolder folder_{TemporaryFolder::kShortPath};
  bool is_in_user_namespace_ = false;
  std::optional<VirtualNetwork> network_;
  std::unique_ptr<Process> controller_;
  std::vector<std::unique_ptr<Process>> nodes_;
};

}  // namespace lockstep::test
