package jobs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

func TopicCommand() *cobra.Command {
	return cli.Group("topic", "get, set, unset: the settings of a topic; delete", "Shows and changes the settings of a topic (docs/limits.md), or deletes the topic.",
		topicGetCommand(), topicSetCommand(), topicUnsetCommand(), topicDeleteCommand())
}

func topicGetCommand() *cobra.Command {
	c := cli.NewCommand("get", "show the settings of a topic, or of all topics that have some", "[TOPIC]", "Shows the settings of a topic, or of all topics that have some.", "tarry topic get mail", 0, 1)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if len(args) == 1 {
			s, err := t.Client.Topics().Settings(ctx, args[0])
			if err != nil {
				return err
			}
			return printSettings(t, s)
		}
		return cli.InTables(t.Client.Topics().AllSettings(ctx, client.PageOptions{}), func(page []client.TopicSettings) error {
			if len(page) == 0 {
				t.Notes.Line("no topic has settings")
			}
			return printSettings(t, page...)
		})
	})
}

// settingFlags are settings as flags of their rows, and as words.
type settingFlags struct{ client.Settings }

func (s *settingFlags) register(c *cli.Command) {
	for _, row := range job.Settings {
		name, help := cli.FlagOf(row), settingHelp(row)
		switch row.Type {
		case job.SettingSwitch:
			c.Flags.BoolFunc(name, help, func(text string) error {
				on, err := strconv.ParseBool(text)
				return errors.Join(err, s.set(row, on))
			})
		case job.SettingBackoff:
			c.Flags.Func(name, backoffHelp+"; of jobs that have no backoff", func(text string) (err error) { s.Backoff, err = backoffOf(text); return err })
		case job.SettingPush:
			s.registerPush(c)
		default:
			c.Flags.Func(name, help, func(text string) error {
				v, err := settingValue(row, text)
				if err != nil {
					return err
				}
				return s.set(row, v)
			})
		}
	}
}

// link is a link of Markdown.
var link = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

// settingHelp is the help of a row for a terminal; what it has in backquotes is the name of
// the value.
func settingHelp(row *job.Setting) string {
	value := map[job.SettingType]string{
		job.SettingDuration: "a `time`, ", job.SettingCount: "a `number`, ", job.SettingRate: "a `number`, ",
		job.SettingText: "a `text`, ", job.SettingNames: "`name,name`, ", job.SettingChoice: "`" + strings.Join(row.Choices, "|") + "`, ",
	}[row.Type]
	plain := strings.NewReplacer("`", "")
	return plain.Replace(link.ReplaceAllString(row.Help, "$1")) + "; " + value + "default " + plain.Replace(row.Default)
}

// settingValue reads a flag.
func settingValue(row *job.Setting, text string) (any, error) {
	switch row.Type {
	case job.SettingDuration:
		var d client.Duration
		err := setTime(&d, text)
		return d, err
	case job.SettingCount:
		return wholeNumber(text)
	case job.SettingRate:
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil {
			err = fmt.Errorf("%q is not a number", text)
		}
		return rate, err
	}
	if row.Type == job.SettingNames {
		return strings.Split(text, ","), nil
	}
	return text, nil
}

// set sets the member of a row, as the server would have written it.
func (s *settingFlags) set(row *job.Setting, v any) error {
	text, err := json.Marshal(map[string]any{row.Name: v})
	if err == nil {
		err = json.Unmarshal(text, &s.Settings)
	}
	if err != nil {
		return errors.New("it is out of range")
	}
	return nil
}

// setTime reads a time that is not 0, which would not be sent.
func setTime(d *client.Duration, text string) error {
	var v cli.Duration
	if err := v.Set(text); err != nil {
		return err
	}
	if v.Value == 0 {
		return errors.New("0 is no setting; take it away with tarry topic unset")
	}
	d.Duration = v.Value
	return nil
}

// rows shows what is set.
func (s *settingFlags) rows() ([][]string, error) {
	text, err := json.Marshal(s.Settings)
	if err != nil {
		return nil, err
	}
	var set map[string]jsontext.Value
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, err
	}
	var rows [][]string
	for _, row := range job.Settings {
		if v, ok := set[row.Name]; ok {
			words, err := s.words(row, v)
			if err != nil {
				return nil, err
			}
			rows = append(rows, []string{cli.FlagOf(row), words})
		}
	}
	return rows, nil
}

// words shows one setting, of which v is the JSON.
func (s *settingFlags) words(row *job.Setting, v jsontext.Value) (string, error) {
	switch row.Type {
	case job.SettingDuration:
		var d client.Duration
		err := json.Unmarshal(v, &d)
		return job.DurationText(d.Duration), err
	case job.SettingChoice:
		var name string
		err := json.Unmarshal(v, &name)
		return name, err
	case job.SettingNames:
		var names []string
		err := json.Unmarshal(v, &names)
		return cli.Plain([]byte(strings.Join(names, ","))), err
	case job.SettingText:
		var text string
		err := json.Unmarshal(v, &text)
		return cli.Plain([]byte(text)), err
	case job.SettingSwitch:
		return "yes", nil
	case job.SettingBackoff:
		return backoffWords(s.Backoff), nil
	case job.SettingPush:
		return pushWords(s.Push), nil
	}
	return string(v), nil
}

func backoffWords(b *client.Backoff) string {
	words := fmt.Sprintf("%s, %g times more each time, up to %s", job.DurationText(b.Base.Duration), b.Factor, job.DurationText(b.Max.Duration))
	if len(b.Delays) > 0 {
		waits := make([]string, len(b.Delays))
		for i, d := range b.Delays {
			waits[i] = job.DurationText(d.Duration)
		}
		words = strings.Join(waits, ", ")
	}
	if b.Jitter != 0 {
		words += fmt.Sprintf(", jitter %g", b.Jitter)
	}
	return words
}

func wholeNumber(text string) (*uint64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return nil, fmt.Errorf("%q is not a whole number of 0 or more", text)
	}
	return &n, nil
}

func topicSetCommand() *cobra.Command {
	c := cli.NewCommand("set", "change settings of a topic", "TOPIC", "Changes the named settings of a topic and keeps the others.", "tarry topic set mail --max-pending 100000", 1, 1)
	var s settingFlags
	s.register(c)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		rows, err := s.rows()
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return cli.Usagef("nothing is to change; give one of --%s", strings.Join(cli.SettingNames(), ", --"))
		}
		changed, err := t.Client.Topics().ChangeSettings(ctx, args[0], s.Settings)
		if err != nil {
			return err
		}
		return printSettings(t, changed)
	})
}

func topicUnsetCommand() *cobra.Command {
	c := cli.NewCommand("unset", "take settings of a topic away", "TOPIC [SETTING...]", "Removes settings of a topic, all of them when none is named.", "tarry topic unset mail max-pending", 1, len(job.Settings)+1)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		topic, names := args[0], args[1:]
		for i, name := range names {
			if !slices.Contains(cli.SettingNames(), name) {
				return cli.Usagef("there is no setting %q; there are %s", name, strings.Join(cli.SettingNames(), ", "))
			}
			names[i] = strings.ReplaceAll(name, "-", "_")
		}
		var changed client.TopicSettings
		var err error
		if len(names) == 0 {
			changed, err = t.Client.Topics().SetSettings(ctx, topic, client.Settings{}, client.AnyRevision)
		} else {
			changed, err = t.Client.Topics().ChangeSettings(ctx, topic, client.Settings{}, names...)
		}
		if err != nil {
			return err
		}
		return printSettings(t, changed)
	})
}

func printSettings(t *cli.Terminal, all ...client.TopicSettings) error {
	for _, s := range all {
		if t.JSON {
			if err := t.PrintJSON(s); err != nil {
				return err
			}
			continue
		}
		rows, err := (&settingFlags{s.Settings}).rows()
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			if err := t.Out.Line("%s has no settings", s.Topic); err != nil {
				return err
			}
			continue
		}
		if err := t.Table([]string{"topic", s.Topic}, rows); err != nil {
			return err
		}
	}
	return nil
}
