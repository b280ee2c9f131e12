package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"tarry/cluster/membership/gossipkeys"
)

// gossipKeys reads the keys that encrypt this node's gossip; nil: there are none.
func (c *serverConfig) gossipKeys() (*gossipkeys.Ring, error) {
	if c.GossipKeysFile == "" {
		return nil, nil
	}
	ring, err := gossipkeys.Open(c.GossipKeysFile)
	if err != nil {
		return nil, fmt.Errorf("the keys of gossip (--gossip-keys-file): %w", err)
	}
	return ring, nil
}

func keygenCommand() *cobra.Command {
	c := &cobra.Command{Use: "keygen [FILE]", Short: "make a key that encrypts gossip", Args: arguments("[FILE]", 0, 1),
		Long:    "Makes a random key for --gossip-keys-file. With FILE it makes that file, which only its owner\ncan read; an existing file is never overwritten. Without, it prints the key.",
		Example: "  tarry keygen gossip.keys"}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		key, out := gossipkeys.New(), printer{cmd.OutOrStdout()}
		if len(args) == 0 {
			return out.line("%s", key.Secret())
		}
		err := gossipkeys.Create(args[0], gossipkeys.Keys{List: []gossipkeys.Key{key}})
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w; nothing is overwritten: name another file, or add a key to a running cluster with tarry keyring install", err)
		}
		if err != nil {
			return err
		}
		return out.line("key %s: %s", key.Fingerprint(), args[0])
	}
	return c
}
