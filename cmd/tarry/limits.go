package main

import (
	"fmt"
	"strconv"
)

// limitNames are the settings that hold back jobs which are ready.
var limitNames = []string{"max-reserved", "rate", "burst"}

func (s *settingFlags) registerLimits(c *clientCommand) {
	c.flags.Func("max-reserved", "most jobs, a `number`, that may be reserved at once", func(text string) (err error) {
		s.MaxReserved, err = wholeNumber(text)
		return err
	})
	c.flags.Func("rate", "most jobs a second, a `number` with up to three decimals, that are handed out on average", func(text string) error {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		s.Rate = &rate
		return nil
	})
	c.flags.Func("burst", "most jobs, a `number`, that are handed out at once under a rate; without it, one second's", func(text string) (err error) {
		s.Burst, err = wholeNumber(text)
		return err
	})
}

// limitRows shows what is set.
func (s *settingFlags) limitRows() (rows [][]string) {
	if s.MaxReserved != nil {
		rows = append(rows, []string{"max-reserved", count(*s.MaxReserved)})
	}
	if s.Rate != nil {
		rows = append(rows, []string{"rate", strconv.FormatFloat(*s.Rate, 'f', -1, 64)})
	}
	if s.Burst != nil {
		rows = append(rows, []string{"burst", count(*s.Burst)})
	}
	return rows
}
