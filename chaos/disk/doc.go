// Package disk puts a faulty file system under a node's data directory.
//
// A Disk is a FUSE mount that writes directly to files in a backing directory. It can
// make operations fail, tear, go to the wrong place, wait or hang (Faults), make pages unreadable (Latent), run full (SetFree), and
// damage files behind the page cache (Damage). It also records how to undo
// everything that no sync has covered. PowerLoss undoes that, which leaves what a
// machine may find on its disk after a power failure.
//
// The minimum that counts as durable is what POSIX guarantees. Data is durable once its
// file was synced, a name once its directory was. A later successful sync does not make
// data of a failed sync durable, because Linux drops that data. Beyond the minimum, the
// seed of PowerLoss chooses what is kept.
//
// The package needs Linux, root and /dev/fuse; Available returns what is missing.
// It imports no other package of the project. The process of a Disk must not keep files
// below the mount open: the kernel could request them while the process cannot reply.
// Use the backing directory instead.
//
// Start with Disk in disk.go. faults.go decides what fails, data.go and names.go
// keep what can be undone, power.go undoes it, node.go and file.go speak FUSE.
package disk
