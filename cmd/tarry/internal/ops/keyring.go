package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

const keyringText = `Shows and changes the keys with which nodes encrypt gossip (docs/tls.md). Keys are named by
fingerprints; the keys themselves travel between nodes only, over TLS. So all commands but
list need --cluster-tls-mode=require on all nodes. Each node writes its --gossip-keys-file
anew, and a node that is away fetches the keys when it is back.

To replace a key: install, use the new one, remove the old one.`

func KeyringCommand() *cobra.Command {
	return cli.Group("keyring", "keys of gossip: list, install, use, remove", keyringText,
		keyringListCommand(), keyringInstallCommand(), keyringUseCommand(), keyringRemoveCommand())
}

func keyringListCommand() *cobra.Command {
	c := cli.NewCommand("list", "list the keys of all nodes", "", "Lists the fingerprints of the keys that each node has. The first one encrypts. Exit code 1 if\na node does not reply or has other keys than the leader.", "tarry keyring list", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		k, err := t.Client.Keys().Keyring(ctx)
		if err != nil {
			return err
		}
		return printKeyring(t, k)
	})
}

func keyringInstallCommand() *cobra.Command {
	c := cli.NewCommand("install", "make a new key on all nodes", "", "Makes a new key on all nodes, with which they decrypt from now on. They go on encrypting with\nthe key that they use. Exit code 1 if a node has not taken it.", "tarry keyring install", 0, 0)
	c.Plans(planInstallKey)
	return changesKeyring(c, "installed key %s", func(ctx context.Context, cl *client.Client, _ []string) (client.Keyring, error) {
		return cl.Keys().Install(ctx)
	})
}

func keyringUseCommand() *cobra.Command {
	c := cli.NewCommand("use", "encrypt with a key that all nodes have", "KEY", "Makes all nodes encrypt with the key that has this fingerprint. It is refused while a node that\nreplies does not have it. For the key in use already it gives all nodes the leader's keys.\nExit code 1 if a node has not taken the change.",
		"tarry keyring use 0a1b2c3d4e5f6071", 1, 1)
	c.Plans(planUseKey)
	return changesKeyring(c, "nodes encrypt with key %s", func(ctx context.Context, cl *client.Client, args []string) (client.Keyring, error) {
		return cl.Keys().Use(ctx, args[0])
	})
}

func keyringRemoveCommand() *cobra.Command {
	c := cli.NewCommand("remove", "remove a key from all nodes", "KEY", "Removes the key that has this fingerprint from all nodes. It is refused unless all nodes reply\nand encrypt with another key. Exit code 1 if a node has not taken the change.",
		"tarry keyring remove 0a1b2c3d4e5f6071", 1, 1)
	c.Plans(planRemoveKey)
	return changesKeyring(c, "removed key %s", func(ctx context.Context, cl *client.Client, args []string) (client.Keyring, error) {
		return cl.Keys().Remove(ctx, args[0])
	})
}

// changesKeyring completes a command that changes the keys. done takes the fingerprint.
func changesKeyring(c *cli.Command, done string, f func(context.Context, *client.Client, []string) (client.Keyring, error)) *cobra.Command {
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		k, err := f(ctx, t.Client, args)
		if err != nil {
			return err
		}
		if !t.JSON {
			if err := t.Out.Line(done+": %d of %d nodes", k.Changed, k.Current, len(k.Nodes)); err != nil {
				return err
			}
		}
		return printKeyring(t, k)
	})
}

// printKeyring prints the keys of all nodes. Its error says which nodes have others than the
// leader.
func printKeyring(t *cli.Terminal, k client.Keyring) error {
	if t.JSON {
		if err := t.PrintJSON(k); err != nil {
			return err
		}
	} else {
		var rows [][]string
		for _, n := range k.Nodes {
			rows = append(rows, []string{n.ID, cli.Count(n.Revision), cli.Dash(strings.Join(n.Keys, " ")), cli.Dash(n.Error)})
		}
		if err := t.Table([]string{"ID", "REVISION", "KEYS", "ERROR"}, rows); err != nil {
			return err
		}
	}
	if k.Current < len(k.Nodes) {
		return fmt.Errorf("%d of %d nodes do not have the keys of the leader", len(k.Nodes)-k.Current, len(k.Nodes))
	}
	return nil
}

// planInstallKey says what tarry keyring install would do.
func planInstallKey(ctx context.Context, t *cli.Terminal, _ []string) (string, error) {
	k, err := t.Client.Keys().Keyring(ctx)
	if err != nil {
		return "", err
	}
	if silent := nodesThat(k, func(n client.NodeKeys) bool { return n.Error != "" }); silent != "" {
		return fmt.Sprintf("a new key would be made on %s, but not yet on those that do not reply: %s", nodesOf(len(k.Nodes)), silent), nil
	}
	return "a new key would be made on " + nodesOf(len(k.Nodes)), nil
}

// planUseKey says what tarry keyring use would do.
func planUseKey(ctx context.Context, t *cli.Terminal, args []string) (string, error) {
	k, err := keyringWith(ctx, t, args[0])
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
func planRemoveKey(ctx context.Context, t *cli.Terminal, args []string) (string, error) {
	k, err := keyringWith(ctx, t, args[0])
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
func keyringWith(ctx context.Context, t *cli.Terminal, key string) (client.Keyring, error) {
	k, err := t.Client.Keys().Keyring(ctx)
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
