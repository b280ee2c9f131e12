package fsm

import "tarry/job"

// limitUses is an array because each commit makes one.
type limitUses [8]job.LimitUse

// noteEmpty counts the topics without jobs that make room for others at the limit. It is called when a
// topic has changed.
func (mem *memory) noteEmpty(t *topic) {
	if now := !t.dropped && t.Jobs() == 0 && !t.Paused(); now != t.spare {
		t.spare = now
		if now {
			mem.spares++
		} else {
			mem.spares--
		}
	}
}

// uses lists the limits of the whole cluster. Idle topics do not count from the cluster version on in
// which they go when others need their place.
func (mem *memory) uses() limitUses {
	topics := len(mem.topics)
	if mem.meta.Version >= 2 {
		topics -= mem.spares
	}
	return limitUses{
		{What: "topics with jobs", Used: topics, Most: mem.limits.MaxTopics},
		{What: "topics with settings", Used: len(mem.settings), Most: mem.limits.MaxTopics},
		{What: "push targets", Used: mem.targets, Most: mem.limits.MaxPushTargets},
		{What: "schedules", Used: mem.scheduleCount, Most: mem.limits.MaxSchedules},
		{What: "namespaces", Used: len(mem.namespaces), Most: mem.limits.MaxNamespaces},
		{What: "tokens", Used: mem.auth.Tokens(), Most: mem.limits.MaxTokens},
		{What: "invitations", Used: len(mem.admission.GetInvitations()), Most: mem.limits.MaxInvitations},
		{What: "removed nodes", Used: len(mem.removed), Most: mem.limits.MaxRemovedNodes},
	}
}

// LimitUses returns how much of the limits of the whole cluster is in use.
func (m *Machine) LimitUses() []job.LimitUse {
	m.mu.RLock()
	uses := m.public.uses
	m.mu.RUnlock()
	return uses[:]
}
