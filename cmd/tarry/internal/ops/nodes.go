package ops

import (
	"fmt"
	"net/url"
	"strings"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

// nodeAt returns a client of one node alone, which must be closed.
func nodeAt(t *cli.Terminal, node string) (*client.Client, error) { return t.Dial([]string{node}, 0) }

// addressesOf are the HTTP addresses of members, as --addr has them; those of members whose
// address is not known are left out.
func addressesOf(t *cli.Terminal, members []client.Member) (list []string) {
	for _, m := range members {
		if m.HTTPAddress != "" {
			list = append(list, addressOf(t, m))
		}
	}
	return list
}

// addressOf is the address of one member, with the scheme of the nodes of --addr.
func addressOf(t *cli.Terminal, m client.Member) string {
	if len(t.Nodes) > 0 && strings.HasPrefix(t.Nodes[0], "https://") {
		return (&url.URL{Scheme: "https", Host: m.HTTPAddress}).String()
	}
	return m.HTTPAddress
}

// noMember is the error of an id that no member has.
func noMember(id string) error {
	return &client.Error{Code: client.CodeNotFound, Message: fmt.Sprintf("%q is not a member; see tarry cluster members", id)}
}

// memberOf finds a member by its id.
func memberOf(members []client.Member, id string) (client.Member, bool) {
	for _, m := range members {
		if m.ID == id {
			return m, true
		}
	}
	return client.Member{}, false
}
