package main

import (
	"context"
	"encoding/json"
	"time"

	"tarry/client"
)

type stepArgs struct {
	Start time.Time       `json:"start"`
	Step  client.Duration `json:"step"`
	Steps int             `json:"steps"`
}

func (a stepArgs) steps() client.ForecastSteps {
	return client.ForecastSteps{Start: a.Start, Step: a.Step.Duration, Steps: a.Steps}
}

func forecast(ctx context.Context, d *driver, a struct {
	topicArgs
	stepArgs
}) (any, error) {
	return d.client.Topics().Forecast(ctx, a.Topic, a.steps())
}

func forecastTopics(ctx context.Context, d *driver, a struct {
	stepArgs
	Max int `json:"max"`
}) (any, error) {
	return d.client.Topics().ForecastTopics(ctx, a.steps(), a.Max)
}

// changeSettings removes the settings that are null.
func changeSettings(ctx context.Context, d *driver, a struct {
	topicArgs
	Settings json.RawMessage `json:"settings"`
}) (any, error) {
	var given map[string]any
	var changes client.Settings
	if err := json.Unmarshal(a.Settings, &given); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(a.Settings, &changes); err != nil {
		return nil, err
	}
	var unset []string
	for name, value := range given {
		if value == nil {
			unset = append(unset, name)
		}
	}
	return d.client.Topics().ChangeSettings(ctx, a.Topic, changes, unset...)
}

type pageArgs struct {
	After string `json:"after"`
	Max   int    `json:"max"`
}

// pages has all elements of a listing in a member.
func pages[T any](name string, a pageArgs, page func(after string) ([]T, string, error)) (any, error) {
	all := []T{}
	for after := a.After; ; {
		list, next, err := page(after)
		if err != nil {
			return nil, err
		}
		if all = append(all, list...); next == "" {
			return object{name: all}, nil
		}
		after = next
	}
}
