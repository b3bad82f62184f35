// Lets file operations of this process fail, or end it, as a bad disk or a crash would: it stands
// in place of the C library's functions. A test program links it and calls SetDiskFaults. A daemon
// gets it by LD_PRELOAD (preloaded_disk_faults.so), and its faults by the environment variable
// LOCKSTEP_DISK_FAULTS.
#pragma once

#include <string>
#include <vector>

namespace lockstep::test {

// One fault is "FOLDER,OPERATION,NAME,NTH,ACTION"; several are separated by semicolons.
//   FOLDER     absolute; only operations on what is below it, or on itself, count
//   OPERATION  any, or one of open, stat, read, write, truncate, sync, close, rename, remove,
//   mkdir;
//              a name that a rename gives counts
//   NAME       part of the path; empty: every path
//   NTH        from 1, of the operations that match, or * for all of them
//   ACTION     an error, such as EIO: the operation fails with it, and does nothing. A sync that
//              fails also loses half of the file, as a kernel may
//              short: a read or write takes half of the bytes; zero: a write takes none
//              kill_before, kill_after: the process is killed; kill_half: in the middle of a write
//              hang: the operation does not end before SetDiskFaults is called again
//              stop: the operation, and every one after it below the folder, fails with EIO, as for
//              a process that dies there; before that a write takes half of the bytes, and a sync
//              loses half of the file
//
// Replaces the faults before, and counts from the beginning. While there are any, a sync below one
// of their folders is not passed on: the tests end processes, not machines, and need not wait for
// the disk. Aborts on a text that it does not understand.
void SetDiskFaults(const std::string& faults);
// Faults of which none acts: below the folder syncs are not passed on, and nothing fails.
std::string NoSyncsBelow(const std::string& folder);

// "OPERATION path" of those that matched a fault since SetDiskFaults, in order.
std::vector<std::string> MatchedDiskOperations();
// Of those on which a fault has acted.
std::vector<std::string> FailedDiskOperations();

// A change that was made below a folder of a fault.
struct DiskChange {
  std::string operation;  // create, write, truncate (to nothing), sync, rename, remove or mkdir
  std::string path;
  std::string from;   // of a rename
  std::string bytes;  // of a write
};
// Those since SetDiskFaults, in order.
std::vector<DiskChange> DiskChanges();

}  // namespace lockstep::test
