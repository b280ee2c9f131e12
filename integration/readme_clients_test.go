package integration

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

// readmeProgram is a block of code of a client's README, with what a reader adds to it.
type readmeProgram struct {
	headings      string // of its section; of two blocks in one program both, separated by +
	before, after string
	until         string // a line that it prints; then SIGTERM must end it well
	finished      uint64 // of the topic demo; then it is ended in whatever way
}

// readmeClient is the README of a client, and how to run what it shows.
type readmeClient struct {
	language, page, file string
	frame                string                   // around each program: %s
	command              func(file string) string // for sh, from the folder of the program
	programs             []readmeProgram
}

const goFrame = `package main
import ("context"; "crypto/tls"; "crypto/x509"; "fmt"; "log"; "os"; "os/signal"; "syscall"; "time"; "tarry/client")
var _ = []any{signal.NotifyContext, syscall.SIGTERM, time.Second, tls.Config{}, x509.NewCertPool, os.ReadFile, log.Print}
var ctx = context.Background()
func check(err error) { if err != nil { panic(err) } }
func send(_ context.Context, body []byte) error { fmt.Printf("sent %%s\n", body); return nil }
func main() {
%s
}`

func readmeClients(root string) []readmeClient {
	return []readmeClient{
		{"go", "client/README.md", "main.go", goFrame, func(file string) string {
			return fmt.Sprintf("out=$PWD/program && (cd '%s' && go build -o $out '%s') && exec ./program", root, file)
		}, []readmeProgram{
			{headings: "Adding jobs+Topics, schedules and the cluster+Working on jobs", after: "\ncheck(err)\n_, _ = added, deleted", until: "sent hello"},
			{
				headings: "TLS", after: "\ncheck(err)\n_, err = c.Topics().Stats(ctx)\ncheck(err)",
				before: "pem, err := os.ReadFile(\"ca.pem\")\ncheck(err)\npool := x509.NewCertPool()\npool.AppendCertsFromPEM(pem)\n",
			},
		}},
		{"python", "clients/python/README.md", "program.py", "%s", func(file string) string {
			return fmt.Sprintf("PYTHONPATH='%s/clients/python/src' exec python3 '%s'", root, file)
		}, []readmeProgram{
			{headings: "An application", until: "mail to ann"},
			{headings: "Adding jobs+Working on jobs", finished: 20},
			{headings: "TLS", after: "client.stats()"},
			{headings: "asyncio", before: "import asyncio\nfrom tarry import AsyncClient\nasync def main() -> None:\n", after: "asyncio.run(main())"},
		}},
		{"php", "clients/php/README.md", "program.php", "<?php require '" + root + "/clients/php/autoload.php';\nuse Tarry\\Client as Other; $client = new Other(['127.0.0.1:7300']);\n%s", func(file string) string {
			return fmt.Sprintf("exec php '%s'", file)
		}, []readmeProgram{
			{headings: "Add a job", after: "if ($client->get('close-order-5')->state !== 'delayed') { throw new Exception(); }"},
			{headings: "Work", before: `function closeOrder(int $n): void { echo "closed $n\n"; }` + "\n" +
				"$client->add(new Tarry\\NewJob('unpaid', ['order' => 5]));\n", until: "closed 5"},
			{headings: "Errors"},
			{headings: "TLS", after: "$client->stats();"},
		}},
		{"js", "clients/node/README.md", "program.mjs", "%s", func(file string) string {
			return fmt.Sprintf("mkdir node_modules && ln -s '%s/clients/node' node_modules/tarry && exec node '%s'", root, file)
		}, []readmeProgram{
			{headings: "An application that survives the loss of a node", until: "reminder 1 attempt 1"},
			{headings: "Calls", before: "import { Client } from 'tarry';\nconst client = new Client(['127.0.0.1:7300']);\n"},
			{headings: "What the client does by itself", before: "import { Client } from 'tarry';\nconst client = new Client(['127.0.0.1:7300']);\n" +
				"await client.add({ topic: 'mail', body: 'x' });\nconst [job] = await client.reserve({ topics: ['mail'] });\n", after: "if ((await client.get(job.id)).state === 'reserved') throw new Error('reserved');"},
			{headings: "TLS", after: "await client.stats();"},
		}},
	}
}

// What the READMEs of the clients show runs as it stands there.
func TestClientReadmesShowCodeThatRuns(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	for _, l := range readmeClients(root) {
		data, err := os.ReadFile(filepath.Join(root, l.page))
		require.NoError(t, err)
		page, shown := string(data), 0
		for _, p := range l.programs {
			var code []string
			for heading := range strings.SplitSeq(p.headings, "+") {
				_, section, found := strings.Cut(page, "\n## "+heading+"\n")
				require.True(t, found, "%s has no %q", l.page, heading)
				section, _, _ = strings.Cut(section, "\n## ")
				block := regexp.MustCompile("(?s)```" + l.language + "\n(.*?)```").FindStringSubmatch(section)
				require.NotNil(t, block, "%q has no code", heading)
				code = append(code, block[1])
				shown++
			}
			if l.language == "python" && strings.Contains(p.before, "def main") {
				code[0] = "    " + strings.ReplaceAll(code[0], "\n", "\n    ") + "\n"
			}
			t.Run(l.language+"/"+p.headings, func(t *testing.T) {
				t.Parallel()
				p.run(t, &l, p.before+strings.Join(code, "\n")+p.after+"\n")
			})
		}
		require.Equal(t, strings.Count(page, "\n```"+l.language+"\n"), shown, "blocks of %s", l.page)
	}
}

// run runs a program against a node of its own, and a proxy with TLS before it.
func (p *readmeProgram) run(t *testing.T, l *readmeClient, code string) {
	c := startCluster(t, 1)
	a, dir := newAuthority(t), t.TempDir()
	for name, file := range map[string]string{"ca": "ca.pem", "cert": "client.pem", "key": "client.key"} {
		require.NoError(t, os.Symlink(a.files[name].(string), filepath.Join(dir, file)))
	}
	node := c.Nodes()[0].HTTP
	secure := newFront(t, c, a.server(l.language != "go")).doors[0].addr
	code = fmt.Sprintf(l.frame, code)
	code = strings.NewReplacer("127.0.0.1:7300", node, "127.0.0.1:7310", node, "127.0.0.1:7320", node, "queue.example.com:443", secure).Replace(code)
	file := filepath.Join(dir, l.file)
	require.NoError(t, os.WriteFile(file, []byte(code), 0o600))
	queue, err := client.New([]string{node})
	require.NoError(t, err)
	defer queue.Close()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", l.command(file))
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	errs := &strings.Builder{}
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }()
	switch {
	case p.finished > 0:
		c.until(func() error {
			topic, err := queue.Topics().Get(t.Context(), "demo")
			if err == nil && topic.Finished < p.finished {
				err = fmt.Errorf("%d jobs are finished; %s", topic.Finished, errs)
			}
			return err
		})
		return
	case p.until != "":
		found := false
		for lines := bufio.NewScanner(out); !found && lines.Scan(); {
			found = strings.HasPrefix(lines.Text(), p.until)
		}
		require.True(t, found, "it prints no %q: %s\n%s", p.until, errs, code)
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	}
	require.NoError(t, cmd.Wait(), "%s\n%s", errs, code)
}
