// Package disk puts a faulty file system under a node's data directory.
//
// A Disk is a directory passed through by FUSE: what a process writes below the
// mount goes straight to files in a backing directory. On the way the disk can
// fail, tear, delay or hang what it is asked (Faults), run full (SetFree), and
// damage files behind the page cache (Damage). It also remembers how to undo
// everything that no sync has covered, and PowerLoss undoes it: what a machine
// may find on its disk after the power went.
//
// What counts as durable is the least that POSIX promises. Data is durable once
// its file was synced, a name once its directory was, and data of a sync that
// failed is not made good by a later sync that succeeds, because Linux drops it.
// Between least and most the seed of PowerLoss chooses.
//
// The package needs Linux, root and /dev/fuse; Available says what is missing.
// It imports no other room. A process must not keep files below its own mount
// open: the kernel would ask this process for them while it cannot answer. Look
// into the backing directory instead.
//
// Start with Disk in disk.go. faults.go decides what fails, data.go and names.go
// keep what can be undone, power.go undoes it, node.go and file.go speak FUSE.
package disk
