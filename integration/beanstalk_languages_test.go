package integration

import (
	"context"
	"net"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBeanstalkdClientsOfOtherLanguages runs clients and frameworks that others wrote, as
// Debian packages them, against a follower.
func TestBeanstalkdClientsOfOtherLanguages(t *testing.T) {
	t.Parallel()
	languages := []struct {
		name, packages string
		present        []string // fails without the interpreter and the client
		script         []string
		hostPort       bool // the script takes host and port in one
	}{
		{"Ruby", "ruby ruby-beaneater", []string{"ruby", "-e", "require 'beaneater'"}, []string{"ruby", "testdata/beanstalk_client.rb"}, true},
		{"PHP", "php-cli php-pda-pheanstalk", []string{"php", "-r", "require 'Pheanstalk/autoload.php';"}, []string{"php", "testdata/beanstalk_client.php"}, false},
		{"Laravel", "php-cli php-pda-pheanstalk php-illuminate-queue php-illuminate-events", []string{"php", "-r", "require 'Illuminate/Queue/autoload.php'; require 'Illuminate/Events/autoload.php';"}, []string{"php", "testdata/laravel_queue.php"}, false},
		{"Symfony", "php-cli php-symfony-beanstalkd-messenger", []string{"php", "-r", "require 'Symfony/Component/Messenger/Bridge/Beanstalkd/autoload.php';"}, []string{"php", "testdata/symfony_messenger.php"}, false},
	}
	c := startCluster(t, 3)
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			if out, err := exec.Command(l.present[0], l.present[1:]...).CombinedOutput(); err != nil {
				t.Skipf("SKIPPED: this machine has no beanstalkd client for %s (apt-get install %s): %v %.200s", l.name, l.packages, err, out)
			}
			addr := c.follower().Beanstalk
			args := append(l.script[1:], addr)
			if !l.hostPort {
				host, port, err := net.SplitHostPort(addr)
				require.NoError(t, err)
				args = append(l.script[1:], host, port)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			out, err := exec.CommandContext(ctx, l.script[0], args...).CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}
