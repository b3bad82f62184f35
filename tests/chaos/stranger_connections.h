// Connections of strangers to a task.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/fs/file_descriptor.h"

namespace lockstep::test {

// Connects to "IP:PORT". Not valid where that takes longer than 300 ms or fails.
FileDescriptor ConnectTo(const std::string& address);
// `count` connections, or those that came before one that failed.
std::vector<FileDescriptor> ConnectTo(const std::string& address, int count);
// Sends what fits into the socket's buffer; the peer may have closed it.
void SendTo(const FileDescriptor& connection, absl::string_view bytes);

}  // namespace lockstep::test
