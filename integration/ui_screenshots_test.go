package integration

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// screenshots are the pictures of docs/images.
var screenshots = []struct {
	file, path string
	look       look
}{
	{"topics-light.png", "/ui/", look{"", 1280, 760, "light"}},
	{"topics-dark.png", "/ui/", look{"", 1280, 760, "dark"}},
	{"topic-dead.png", "/ui/topic?topic=webhooks.partner&state=dead", look{"", 1280, 600, "light"}},
	{"job-dark.png", "/ui/job?id=order-88147", look{"", 1280, 1000, "dark"}},
	{"upcoming-light.png", "/ui/upcoming?step=3600&at=" + url.QueryEscape(time.Now().UTC().Add(150*time.Minute).Truncate(time.Hour).Format(time.RFC3339)), look{"", 1280, 900, "light"}},
	{"topics-phone.png", "/ui/", look{"", 400, 800, "light"}},
	{"job-phone.png", "/ui/job?id=hook-501001", look{"", 400, 800, "dark"}},
}

// shopTime is how long the shop runs before the pictures are taken, for the rates.
const shopTime = 2 * time.Minute

func takeScreenshots(t *testing.T, b *browser, addr, dir string) {
	require.NoError(t, os.MkdirAll(dir, 0o755))
	runShop(t, addr, shopTime)
	for _, s := range screenshots {
		p := b.open(t, addr, s.look)
		p.visit(s.path)
		shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, s.file), smaller(t, shot), 0o644))
	}
}

// smaller returns a PNG with at most 256 colours: a page has few, and the shades of the edges
// of letters can be merged. Each pixel gets a colour that differs as little as 256 colours
// allow for all of them, so rare colours stay what they are, such as the red of a number.
func smaller(t *testing.T, shot []byte) []byte {
	from, err := png.Decode(bytes.NewReader(shot))
	require.NoError(t, err)
	box := from.Bounds()
	counts := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	common := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for apart := 1; palette == nil; apart++ {
		palette = distinct(common, apart)
	}
	to := image.NewPaletted(box, palette)
	nearest := map[color.RGBA]uint8{}
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			c := at(x, y)
			if _, ok := nearest[c]; !ok {
				nearest[c] = uint8(palette.Index(c))
			}
			to.SetColorIndex(x, y, nearest[c])
		}
	}
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to))
	return out.Bytes()
}

// distinct returns the first colours that are apart from each other; nil if there are more than
// 256. All others are near one of these.
func distinct(colors []color.RGBA, apart int) (chosen color.Palette) {
	near := func(a color.Color) func(color.Color) bool {
		return func(b color.Color) bool {
			p, q := a.(color.RGBA), b.(color.RGBA)
			r, g, b2 := int(p.R)-int(q.R), int(p.G)-int(q.G), int(p.B)-int(q.B)
			return r*r+g*g+b2*b2 < apart*apart
		}
	}
	for _, c := range colors {
		if slices.ContainsFunc(chosen, near(c)) {
			continue
		}
		if len(chosen) == 256 {
			return nil
		}
		chosen = append(chosen, c)
	}
	return chosen
}

func TestRareColoursStayInAPicture(t *testing.T) {
	from := image.NewRGBA(image.Rect(0, 0, 64, 64))
	for y := range 64 {
		for x := range 64 {
			from.Set(x, y, color.RGBA{uint8(4 * x), uint8(4 * y), 200, 255})
		}
	}
	red := color.RGBA{200, 20, 10, 255}
	from.Set(5, 5, red)
	var shot bytes.Buffer
	require.NoError(t, png.Encode(&shot, from))
	to, err := png.Decode(bytes.NewReader(smaller(t, shot.Bytes())))
	require.NoError(t, err)
	require.Equal(t, red, color.RGBAModel.Convert(to.At(5, 5)))
}
