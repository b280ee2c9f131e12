package job

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// ParseDuration reads a duration as people write it: a Go duration (1h30m, 250ms), which may
// begin with weeks and days (2w, 1d12h), or plain seconds. It is not negative.
func ParseDuration(text string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		if !(n >= 0 && n < 9e9) {
			return 0, fmt.Errorf("%.40s seconds is out of range", text)
		}
		return time.Duration(n * float64(time.Second)), nil
	}
	d, ok := parseUnits(text)
	if !ok {
		return 0, fmt.Errorf("%.40q is not a duration of 0 or more, such as 250ms, 30s, 1h30m, 1d, 2w or 45 (seconds)", text)
	}
	return d, nil
}

// leading are the weeks and days that a duration begins with.
var leading = regexp.MustCompile(`^(?:(\d{1,7})w)?(?:(\d{1,7})d)?`)

// parseUnits is time.ParseDuration with weeks and days, of 24 hours, in front.
func parseUnits(text string) (d time.Duration, ok bool) {
	found := leading.FindStringSubmatch(text)
	weeks, _ := strconv.Atoi("0" + found[1])
	days, _ := strconv.Atoi("0" + found[2])
	days += 7 * weeks
	rest := text[len(found[0]):]
	if rest != "" || found[0] == "" {
		var err error
		if d, err = time.ParseDuration(rest); err != nil || d < 0 {
			return 0, false
		}
	}
	if int64(days) > int64((math.MaxInt64-d)/day) {
		return 0, false
	}
	return time.Duration(days)*day + d, true
}

// DurationText shows a duration in full, in the form that ParseDuration takes: 14d, 1h30m,
// 250ms.
func DurationText(d time.Duration) string {
	text := (d % day).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	switch {
	case d < day:
		return text
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	}
	return fmt.Sprintf("%dd%s", d/day, text)
}
