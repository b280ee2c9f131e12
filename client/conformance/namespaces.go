package main

import (
	"context"

	"tarry/client"
)

type namespaceArgs struct {
	Name string `json:"name"`
	client.NamespaceSpec
}

func putNamespace(ctx context.Context, d *driver, a namespaceArgs) (any, error) {
	return d.client.Namespaces().Put(ctx, a.Name, a.NamespaceSpec, client.AnyRevision)
}

func namespaces(ctx context.Context, d *driver, _ struct{}) (any, error) {
	return listed("namespaces", d.client.Namespaces().List(ctx))
}

func namespace(ctx context.Context, d *driver, a namespaceArgs) (any, error) {
	return d.client.Namespaces().Get(ctx, a.Name)
}

func deleteNamespace(ctx context.Context, d *driver, a namespaceArgs) (any, error) {
	return object{}, d.client.Namespaces().Delete(ctx, a.Name)
}
