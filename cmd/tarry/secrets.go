package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"tarry/internal/secretkeys"
)

// secretKeys reads the keys that seal secrets; nil: there are none.
func (c *serverConfig) secretKeys() (*secretkeys.Ring, error) {
	if c.SecretsKeyFile == "" {
		return nil, nil
	}
	ring, err := secretkeys.Open(c.SecretsKeyFile)
	if err != nil {
		return nil, fmt.Errorf("the keys of secrets (--secrets-key-file): %w", err)
	}
	return ring, nil
}

const secretsText = `Makes and shows the keys that seal the secrets of push targets, so that disks and backups do not
show them (docs/push.md). Each node has the keys in its --secrets-key-file.

To replace a key: add a new one at the end of the file of every node, put it first in every
file, run tarry secrets rewrap, and remove the old one once tarry secrets list shows no topics
for it.`

func secretsCommand() *cobra.Command {
	return group("secrets", "keys that seal secrets: keygen, list, rewrap", secretsText,
		secretsKeygenCommand(), secretsListCommand(), secretsRewrapCommand())
}

func secretsKeygenCommand() *cobra.Command {
	c := &cobra.Command{Use: "keygen [FILE]", Short: "make a key that seals secrets", Args: arguments("[FILE]", 0, 1),
		Long:    "Makes a random key for --secrets-key-file. With FILE it makes that file, which only its owner\ncan read; an existing file is never overwritten. Without, it prints the key.",
		Example: "  tarry secrets keygen secrets.keys"}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		key, out := secretkeys.NewKey(), printer{cmd.OutOrStdout()}
		if len(args) == 0 {
			return out.line("%s", key.Text())
		}
		err := secretkeys.Create(args[0], key)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w; nothing is overwritten: name another file, or add the output of tarry secrets keygen to this one", err)
		}
		if err != nil {
			return err
		}
		return out.line("key %s: %s", key.ID(), args[0])
	}
	return c
}

func secretsListCommand() *cobra.Command {
	c := newCommand("list", "list the keys that seal secrets", "", "Lists the keys of a node, the one that seals first, and others that secrets need, with the number\nof topics whose secrets are sealed with each. It needs the verb admin.", "tarry secrets list", 0, 0)
	return c.does(func(ctx context.Context, t *terminal, _ []string) error {
		k, err := t.client.Keys().Secrets(ctx)
		if err != nil {
			return err
		}
		if t.json {
			return t.printJSON(k)
		}
		var rows [][]string
		for _, key := range k.Keys {
			use := "opens"
			switch {
			case key.Seals:
				use = "seals"
			case !key.Held:
				use = "missing on this node"
			}
			rows = append(rows, []string{key.ID, use, count(uint64(key.Topics))})
		}
		if k.Plain > 0 {
			rows = append(rows, []string{"-", "not sealed", count(uint64(k.Plain))})
		}
		return t.table([]string{"KEY", "USE", "TOPICS"}, rows)
	})
}

func secretsRewrapCommand() *cobra.Command {
	c := newCommand("rewrap", "seal all secrets with the first key", "", "Seals the secrets of all topics with the first key of the node: those that are plain, and those\nthat another key has sealed. All nodes must have that key. It can be repeated, and needs the\nverbs admin, and manage and push on all topics. Exit code 1 if a secret is not sealed.", "tarry secrets rewrap", 0, 0)
	return c.does(func(ctx context.Context, t *terminal, _ []string) error {
		r, err := t.client.Keys().RewrapSecrets(ctx)
		if err != nil {
			return err
		}
		if t.json {
			err = t.printJSON(r)
		} else {
			err = t.out.line("sealed: %d, unchanged: %d, failed: %d", r.Rewrapped, r.Unchanged, r.Failed)
		}
		if err == nil && r.Failed > 0 {
			err = fmt.Errorf("%d secrets are not sealed with the first key; the first one: %s", r.Failed, r.Reason)
		}
		return err
	})
}
