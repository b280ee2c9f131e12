package main

import (
	"context"
	"encoding/json"
	"iter"
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

func (a pageArgs) page() client.PageOptions { return client.PageOptions{After: a.After, Size: a.Max} }

// topics returns one page.
func topics(ctx context.Context, d *driver, a pageArgs) (any, error) {
	page := []client.Topic{}
	for t, err := range d.client.Topics().List(ctx, a.page()) {
		switch {
		case err != nil:
			return nil, err
		case a.Max > 0 && len(page) == a.Max:
			return object{"topics": page, "next": page[a.Max-1].Name}, nil
		}
		page = append(page, t)
	}
	return object{"topics": page, "next": ""}, nil
}

// listed has all elements of a list in a member.
func listed[T any](name string, list iter.Seq2[T, error]) (any, error) {
	all, err := client.Collect(list)
	if err != nil {
		return nil, err
	}
	return object{name: append([]T{}, all...)}, nil // never null
}
