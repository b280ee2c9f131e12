// Package clockguard keeps a node whose clock is wrong from leading, because the state
// machine takes the time from the leader's clock.
//
// The reference is the lower median of the clocks of the voters that reply: the lower one,
// because a late delivery is safe and an early one is not. Every status call carries the
// time, and its round trip bounds the error, as in NTP.
//
//   - A node whose clock is off the median by more than Config.MaxOffset, plus the
//     error, does not lead while a majority of the voters agrees on the time. It
//     transfers leadership to a voter whose clock is right.
//   - While no majority agrees, no clock is known to be wrong and the leader stays. The
//     leader's entries still use the lower median (Config.Confirmed).
//   - The clock of a single voter counts as right.
//
// The package knows Raft's configuration, and job's types for what operators see.
// Callbacks in Config ask servers and transfer leadership. Start reading at compare in
// verdict.go; guard.go decides when it is called.
package clockguard
