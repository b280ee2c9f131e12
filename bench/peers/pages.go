package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	blockBegin = "<!-- made by make bench-peers: %s -->\n"
	blockEnd   = "\n<!-- end -->"
)

// fillPage puts each block between its marks. A mark without a block, or a block without
// a mark, is an error.
func fillPage(page string, blocks map[string]string) (string, error) {
	for name, text := range blocks {
		head, rest, found := strings.Cut(page, fmt.Sprintf(blockBegin, name))
		if !found {
			return "", fmt.Errorf("the page has no place for %q", name)
		}
		_, tail, found := strings.Cut(rest, blockEnd)
		if !found {
			return "", fmt.Errorf("the place for %q has no end", name)
		}
		page = head + fmt.Sprintf(blockBegin, name) + text + blockEnd + tail
	}
	if places := strings.Count(page, strings.Split(blockBegin, "%s")[0]); places != len(blocks) {
		return "", fmt.Errorf("the page has %d places for %d blocks", places, len(blocks))
	}
	return page, nil
}

// writePages makes the tables of the page and the plots from the results.
func writePages(root, file string) error {
	r, err := readResults(file)
	if err != nil {
		return err
	}
	path := filepath.Join(root, "docs", "benchmarks.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := fillPage(string(page), r.blocks())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	plots, err := r.plots()
	if err != nil {
		return err
	}
	for name, svg := range plots {
		if err := os.WriteFile(filepath.Join(root, "docs", "images", name), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}
