package main

import (
	"context"

	"tarry/client"
)

type tokenArgs struct {
	ID string `json:"id"`
	client.TokenSpec
}

func putToken(ctx context.Context, d *driver, a tokenArgs) (any, error) {
	return d.client.Tokens().Put(ctx, a.ID, a.TokenSpec)
}

func tokens(ctx context.Context, d *driver, _ struct{}) (any, error) {
	return listed("tokens", d.client.Tokens().List(ctx))
}

func token(ctx context.Context, d *driver, a refArgs) (any, error) {
	return d.client.Tokens().Get(ctx, a.ID)
}

func rotateToken(ctx context.Context, d *driver, a struct {
	ID      string          `json:"id"`
	Overlap client.Duration `json:"overlap"`
}) (any, error) {
	return d.client.Tokens().Rotate(ctx, a.ID, a.Overlap.Duration)
}

func deleteToken(ctx context.Context, d *driver, a refArgs) (any, error) {
	return object{}, d.client.Tokens().Delete(ctx, a.ID)
}

func whoAmI(ctx context.Context, d *driver, _ struct{}) (any, error) { return d.client.WhoAmI(ctx) }
