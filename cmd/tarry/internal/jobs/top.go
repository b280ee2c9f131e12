package jobs

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/internal/sleep"
)

const topText = `Shows the topics with their jobs by state, and how many are added and finished in a second,
until Ctrl-C ends it. On a terminal the table changes in place; elsewhere one is printed
after the other.`

// topOrders are the columns by which the topics can be sorted, the largest first.
var topOrders = []struct {
	name string
	of   func(row *topRow) float64
}{
	{"backlog", func(r *topRow) float64 { return float64(r.Ready + r.Reserved) }},
	{"delayed", func(r *topRow) float64 { return float64(r.Delayed) }},
	{"ready", func(r *topRow) float64 { return float64(r.Ready) }},
	{"reserved", func(r *topRow) float64 { return float64(r.Reserved) }},
	{"dead", func(r *topRow) float64 { return float64(r.Dead) }},
	{"added", func(r *topRow) float64 { return r.added }},
	{"finished", func(r *topRow) float64 { return r.finished }},
}

// topRow is a topic with its rates since the last look.
type topRow struct {
	client.Topic
	added, finished float64 // a second
}

// top looks at all topics again and again.
type top struct {
	t     *cli.Terminal
	order func(row *topRow) float64 // nil: by name
	most  int                       // topics to show; 0: as many as the terminal has lines for
	at    time.Time                 // of the last look
	last  map[string]client.Topic
}

func TopCommand() *cobra.Command {
	c := cli.NewCommand("top", "watch the topics", "", topText, "tarry top --sort dead", 0, 0)
	interval := &cli.Duration{Value: 2 * time.Second, Positive: true}
	var order string
	var most, rounds int
	c.Flags.Var(interval, "interval", "`time` between two looks")
	c.Flags.StringVar(&order, "sort", "backlog", "`column` to sort by: name, backlog (ready and reserved), delayed, ready, reserved, dead, added or finished")
	c.Flags.IntVarP(&most, "max", "n", 0, "`number` of topics to show; default: as many as there is room for")
	c.Flags.IntVar(&rounds, "rounds", 0, "`number` of looks to stop after; default: go on for ever")
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		w := &top{t: t, most: most}
		for _, o := range topOrders {
			if o.name == order {
				w.order = o.of
			}
		}
		switch {
		case w.order == nil && order != "name":
			return cli.Usagef("there is no column %q to sort by", order)
		case most < 0 || rounds < 0:
			return cli.Usagef("--max and --rounds take 1 or more")
		}
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		return w.run(ctx, interval.Value, rounds)
	})
}

// Sequences that a terminal understands: a screen of its own without a cursor, and back;
// to the upper left; the rest of the line, or of the screen, away.
const (
	screenOwn  = "\x1b[?1049h\x1b[?25l"
	screenBack = "\x1b[?25h\x1b[?1049l"
	screenTop  = "\x1b[H"
	lineRest   = "\x1b[K"
	screenRest = "\x1b[J"
)

// run looks until ctx ends, or for so many rounds; 0 is without end.
func (w *top) run(ctx context.Context, interval time.Duration, rounds int) error {
	screen, live := w.t.Out.To.(*cli.HarmlessWriter)
	live = live && screen.Terminal && !w.t.JSON
	if live {
		if err := screen.AsIs([]byte(screenOwn)); err != nil {
			return err
		}
		defer func() { _ = screen.AsIs([]byte(screenBack)) }() // what is lost is the picture
	}
	for round := 1; ; round++ {
		rows, err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (!live || cli.ExitCode(err) != cli.ExitUnreachable):
			return err
		case live:
			err = screen.AsIs([]byte(w.frame(rows, err, terminalLines(screen))))
		default:
			err = w.print(rows)
		}
		if err != nil || round == rounds || !sleep.For(ctx, interval) {
			return err
		}
	}
}

// look reads the topics and sorts them.
func (w *top) look(ctx context.Context) ([]topRow, error) {
	var rows []topRow
	seen := map[string]client.Topic{}
	for p, err := range w.t.Client.Topics().List(ctx, client.PageOptions{}) {
		if err != nil {
			return nil, err
		}
		rows, seen[p.Name] = append(rows, topRow{Topic: p}), p
	}
	w.rates(rows, seen)
	slices.SortStableFunc(rows, func(a, b topRow) int {
		if w.order == nil {
			return 0 // the server sorts by name
		}
		return cmp.Compare(w.order(&b), w.order(&a))
	})
	return rows, nil
}

// rates compares with the look before.
func (w *top) rates(rows []topRow, seen map[string]client.Topic) {
	now := w.t.Now()
	passed := now.Sub(w.at).Seconds()
	for i := range rows {
		r := &rows[i]
		// A topic that is new has no rate, and one that was removed meanwhile counts anew.
		if before, ok := w.last[r.Name]; ok && r.Added >= before.Added && r.Finished >= before.Finished && passed > 0 {
			r.added, r.finished = float64(r.Added-before.Added)/passed, float64(r.Finished-before.Finished)/passed
		}
	}
	w.at, w.last = now, seen
}

// summary is the line above the table.
func (w *top) summary(rows []topRow) string {
	var all client.Topic
	var added, finished float64
	for i := range rows {
		r := &rows[i]
		all.Delayed, all.Ready, all.Reserved, all.Dead = all.Delayed+r.Delayed, all.Ready+r.Ready, all.Reserved+r.Reserved, all.Dead+r.Dead
		added, finished = added+r.added, finished+r.finished
	}
	return fmt.Sprintf("%s  topics: %d  delayed: %d  ready: %d  reserved: %d  dead: %d  added: %.1f/s  finished: %.1f/s",
		w.at.Format(time.TimeOnly), len(rows), all.Delayed, all.Ready, all.Reserved, all.Dead, added, finished)
}

// columns lays the table out, with so many topics at most.
func (w *top) columns(rows []topRow, most int) string {
	head := []string{"TOPIC", "DELAYED", "READY", "RESERVED", "DEAD", "ADDED/S", "FINISHED/S", "OLDEST DUE", "PAUSE"}
	var cells [][]string
	for i := range rows[:min(len(rows), most)] {
		r := &rows[i]
		cells = append(cells, []string{
			r.Name, cli.Count(r.Delayed), cli.Count(r.Ready), cli.Count(r.Reserved), cli.Count(r.Dead),
			fmt.Sprintf("%.1f", r.added), fmt.Sprintf("%.1f", r.finished), w.t.When(r.OldestDueAt), pauseWords(w.t, r.Paused, r.PausedUntil),
		})
	}
	return w.t.Columns(head, cells)
}

// frame is a whole screen: what was there is written over, line by line, so that nothing
// flickers. failure, if any, stands in place of the topics.
func (w *top) frame(rows []topRow, failure error, room int) string {
	text := cli.Harmless(w.summary(rows), "") + "\n\n"
	if failure != nil {
		text = cli.Harmless(cli.Explain(failure), "") + "\n"
	} else {
		most := max(room-4, 1) // the summary, the empty line, the head, the cursor
		if w.most > 0 {
			most = min(most, w.most)
		}
		text += w.columns(rows, most)
	}
	return screenTop + strings.ReplaceAll(text, "\n", lineRest+"\n") + screenRest
}

// print prints a table behind the one before.
func (w *top) print(rows []topRow) error {
	if w.most > 0 {
		rows = rows[:min(len(rows), w.most)]
	}
	if w.t.JSON {
		for i := range rows {
			line := struct {
				client.Topic
				AddedRate    float64 `json:"added_per_second"`
				FinishedRate float64 `json:"finished_per_second"`
			}{rows[i].Topic, rows[i].added, rows[i].finished}
			if err := w.t.PrintJSON(line); err != nil {
				return err
			}
		}
		return nil
	}
	if err := w.t.Out.Line("%s", w.summary(rows)); err != nil {
		return err
	}
	return w.t.Out.Text([]byte(w.columns(rows, len(rows))))
}

// terminalLines is how many lines the terminal has.
func terminalLines(screen *cli.HarmlessWriter) int {
	const usual = 24
	file, ok := screen.To.(*os.File)
	if !ok {
		return usual
	}
	if _, lines, err := term.GetSize(int(file.Fd())); err == nil && lines > 0 {
		return lines
	}
	return usual
}
