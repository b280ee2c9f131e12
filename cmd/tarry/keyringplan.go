package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tarry/client"
)

// planInstallKey says what tarry keyring install would do.
func planInstallKey(ctx context.Context, t *terminal, _ []string) (string, error) {
	k, err := t.client.Keys().Keyring(ctx)
	if err != nil {
		return "", err
	}
	if silent := nodesThat(k, func(n client.NodeKeys) bool { return n.Error != "" }); silent != "" {
		return fmt.Sprintf("a new key would be made on %s, but not yet on those that do not reply: %s", nodesOf(len(k.Nodes)), silent), nil
	}
	return "a new key would be made on " + nodesOf(len(k.Nodes)), nil
}

// planUseKey says what tarry keyring use would do.
func planUseKey(ctx context.Context, t *terminal, args []string) (string, error) {
	k, err := t.keyringWith(ctx, args[0])
	switch {
	case err != nil:
		return "", err
	case k.Keys[0] == args[0]:
		return fmt.Sprintf("key %s encrypts already; all nodes would get the leader's keys", args[0]), nil
	}
	if lack := nodesThat(k, func(n client.NodeKeys) bool { return n.Error == "" && !slices.Contains(n.Keys, args[0]) }); lack != "" {
		return fmt.Sprintf("it would be refused, because these nodes do not have key %s: %s", args[0], lack), nil
	}
	return fmt.Sprintf("%s would encrypt with key %s instead of %s", nodesOf(len(k.Nodes)), args[0], k.Keys[0]), nil
}

// planRemoveKey says what tarry keyring remove would do.
func planRemoveKey(ctx context.Context, t *terminal, args []string) (string, error) {
	k, err := t.keyringWith(ctx, args[0])
	switch {
	case err != nil:
		return "", err
	case k.Keys[0] == args[0]:
		return fmt.Sprintf("it would be refused, because key %s encrypts now", args[0]), nil
	}
	if need := nodesThat(k, func(n client.NodeKeys) bool { return len(n.Keys) == 0 || n.Keys[0] != k.Keys[0] }); need != "" {
		return fmt.Sprintf("it would be refused, because these nodes do not reply or encrypt with another key than %s: %s", k.Keys[0], need), nil
	}
	return fmt.Sprintf("key %s would be removed from %s", args[0], nodesOf(len(k.Nodes))), nil
}

// keyringWith lists the keys, and fails unless the leader has the key.
func (t *terminal) keyringWith(ctx context.Context, key string) (client.Keyring, error) {
	k, err := t.client.Keys().Keyring(ctx)
	if err == nil && !slices.Contains(k.Keys, key) {
		err = &client.Error{Code: client.CodeNotFound, Message: fmt.Sprintf("the leader has no gossip key %q; see tarry keyring list", key)}
	}
	return k, err
}

// nodesThat lists the ids of the nodes for which f is true.
func nodesThat(k client.Keyring, f func(client.NodeKeys) bool) string {
	var ids []string
	for _, n := range k.Nodes {
		if f(n) {
			ids = append(ids, n.ID)
		}
	}
	return strings.Join(ids, ", ")
}
