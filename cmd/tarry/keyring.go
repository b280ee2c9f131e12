package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tarry/client"
)

const keyringText = `Shows and changes the keys with which nodes encrypt gossip (docs/tls.md). Keys are named by
fingerprints; the keys themselves travel between nodes only, over TLS. So all commands but
list need --cluster-tls-mode=require on all nodes. Each node writes its --gossip-keys-file
anew, and a node that is away fetches the keys when it is back.

To replace a key: install, use the new one, remove the old one.`

func keyringCommand() *cobra.Command {
	return group("keyring", "keys of gossip: list, install, use, remove", keyringText,
		keyringListCommand(), keyringInstallCommand(), keyringUseCommand(), keyringRemoveCommand())
}

func keyringListCommand() *cobra.Command {
	c := newCommand("list", "list the keys of all nodes", "", "Lists the fingerprints of the keys that each node has. The first one encrypts. Exit code 1 if\na node does not reply or has other keys than the leader.", "tarry keyring list", 0, 0)
	return c.does(func(ctx context.Context, t *terminal, _ []string) error {
		k, err := t.client.Keys().Keyring(ctx)
		if err != nil {
			return err
		}
		return t.printKeyring(k)
	})
}

func keyringInstallCommand() *cobra.Command {
	c := newCommand("install", "make a new key on all nodes", "", "Makes a new key on all nodes, with which they decrypt from now on. They go on encrypting with\nthe key that they use. Exit code 1 if a node has not taken it.", "tarry keyring install", 0, 0)
	c.plans(planInstallKey)
	return c.changesKeyring("installed key %s", func(ctx context.Context, cl *client.Client, _ []string) (client.Keyring, error) {
		return cl.Keys().Install(ctx)
	})
}

func keyringUseCommand() *cobra.Command {
	c := newCommand("use", "encrypt with a key that all nodes have", "KEY", "Makes all nodes encrypt with the key that has this fingerprint. It is refused while a node that\nreplies does not have it. For the key in use already it gives all nodes the leader's keys.\nExit code 1 if a node has not taken the change.",
		"tarry keyring use 0a1b2c3d4e5f6071", 1, 1)
	c.plans(planUseKey)
	return c.changesKeyring("nodes encrypt with key %s", func(ctx context.Context, cl *client.Client, args []string) (client.Keyring, error) {
		return cl.Keys().Use(ctx, args[0])
	})
}

func keyringRemoveCommand() *cobra.Command {
	c := newCommand("remove", "remove a key from all nodes", "KEY", "Removes the key that has this fingerprint from all nodes. It is refused unless all nodes reply\nand encrypt with another key. Exit code 1 if a node has not taken the change.",
		"tarry keyring remove 0a1b2c3d4e5f6071", 1, 1)
	c.plans(planRemoveKey)
	return c.changesKeyring("removed key %s", func(ctx context.Context, cl *client.Client, args []string) (client.Keyring, error) {
		return cl.Keys().Remove(ctx, args[0])
	})
}

// changesKeyring completes a command that changes the keys. done takes the fingerprint.
func (c *clientCommand) changesKeyring(done string, f func(context.Context, *client.Client, []string) (client.Keyring, error)) *cobra.Command {
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		k, err := f(ctx, t.client, args)
		if err != nil {
			return err
		}
		if !t.json {
			if err := t.out.line(done+": %d of %d nodes", k.Changed, k.Current, len(k.Nodes)); err != nil {
				return err
			}
		}
		return t.printKeyring(k)
	})
}

// printKeyring prints the keys of all nodes. Its error says which nodes have others than the
// leader.
func (t *terminal) printKeyring(k client.Keyring) error {
	if t.json {
		if err := t.printJSON(k); err != nil {
			return err
		}
	} else {
		var rows [][]string
		for _, n := range k.Nodes {
			rows = append(rows, []string{n.ID, count(n.Revision), dash(strings.Join(n.Keys, " ")), dash(n.Error)})
		}
		if err := t.table([]string{"ID", "REVISION", "KEYS", "ERROR"}, rows); err != nil {
			return err
		}
	}
	if k.Current < len(k.Nodes) {
		return fmt.Errorf("%d of %d nodes do not have the keys of the leader", len(k.Nodes)-k.Current, len(k.Nodes))
	}
	return nil
}
