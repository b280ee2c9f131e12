package main

import (
	"bytes"
	"fmt"
	"image/color"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// look is how a system is drawn in every plot. The colours are Okabe and Ito's, which
// people who see colours differently can tell apart, and each has a shape too.
type look struct {
	color color.RGBA
	shape draw.GlyphDrawer
	dash  []vg.Length
}

var looks = map[string]look{
	"tarry-http":       {color.RGBA{213, 94, 0, 255}, draw.CircleGlyph{}, nil},
	"tarry-beanstalkd": {color.RGBA{230, 159, 0, 255}, draw.SquareGlyph{}, nil},
	"nats":             {color.RGBA{0, 114, 178, 255}, draw.TriangleGlyph{}, []vg.Length{6, 2}},
	"beanstalkd":       {color.RGBA{0, 158, 115, 255}, draw.PyramidGlyph{}, []vg.Length{2, 2}},
	"redis":            {color.RGBA{204, 121, 167, 255}, draw.CrossGlyph{}, []vg.Length{8, 2, 2, 2}},
	"redis-wait":       {color.RGBA{0, 0, 0, 255}, draw.PlusGlyph{}, []vg.Length{2, 4}},
}

const (
	plotWidth  = 8 * vg.Inch
	plotHeight = 4.5 * vg.Inch
)

// series gives the points of one system; without points it is left out.
type series func(key string) plotter.XYs

// plots are the files of the page, by name.
func (r *results) plots() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, p := range []struct {
		file, title, x, y string
		logX              bool
		ticks             []plot.Tick
		of                series
	}{
		{"bench-put.svg", "Jobs added one by one", "connections", "puts a second", true, ticksOf(1, 4, 16, 64, 256), r.putSeries},
		{"bench-latency.svg", fmt.Sprintf("Latency of one put, %d connections", manyConnections), "percentile", "milliseconds", false, percentiles, r.latencySeries},
		{"bench-lateness.svg", fmt.Sprintf("Lateness at %s jobs due a second, %d waiting consumers", thousands(highRate), consumers), "percentile", "milliseconds", false, percentiles, r.latenessSeries},
		{"bench-memory.svg", "Memory of all processes together", "pending jobs", "MiB", true, ticksOf(10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000), r.memorySeries},
	} {
		pic := plot.New()
		pic.Title.Text, pic.X.Label.Text, pic.Y.Label.Text = p.title, p.x, p.y
		pic.X.Tick.Marker = plot.ConstantTicks(p.ticks)
		if p.logX {
			pic.X.Scale = plot.LogScale{}
		}
		pic.Y.Scale, pic.Y.Tick.Marker = plot.LogScale{}, decades{}
		if err := r.draw(pic, p.of); err != nil {
			return nil, fmt.Errorf("%s: %w", p.file, err)
		}
		svg, err := render(pic)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.file, err)
		}
		files[p.file] = svg
	}
	return files, nil
}

func (r *results) draw(pic *plot.Plot, of series) error {
	for _, text := range []*font.Font{&pic.Title.TextStyle.Font, &pic.X.Label.TextStyle.Font, &pic.Y.Label.TextStyle.Font,
		&pic.X.Tick.Label.Font, &pic.Y.Tick.Label.Font, &pic.Legend.TextStyle.Font} {
		text.Variant = "Sans"
	}
	pic.Title.Padding, pic.Title.TextStyle.Font.Size = 10, 14
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{200}, color.Gray{200}
	pic.Add(grid)
	pic.BackgroundColor = color.White
	pic.Legend.Top, pic.Legend.Padding = true, 3
	for _, s := range r.Systems {
		xys := of(s.Key)
		if len(xys) == 0 {
			continue
		}
		line, points, err := plotter.NewLinePoints(xys)
		if err != nil {
			return err
		}
		l := looks[s.Key]
		line.Color, line.Width, line.Dashes = l.color, 1.5, l.dash
		points.Color, points.Shape, points.Radius = l.color, l.shape, 4
		pic.Add(line, points)
		pic.Legend.Add(s.Name, line, points)
	}
	return nil
}

// render draws the plot with its legend to the right of it.
func render(pic *plot.Plot) ([]byte, error) {
	const legend = 3 * vg.Inch
	w, err := draw.NewFormattedCanvas(plotWidth+legend, plotHeight, "svg")
	if err != nil {
		return nil, err
	}
	all := draw.New(w)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	key := pic.Legend
	pic.Legend = plot.NewLegend()
	pic.Draw(draw.Crop(all, 4, -legend, 4, -4))
	key.Left = true
	key.Draw(draw.Crop(all, plotWidth+8, -4, 4, -34))
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func ticksOf(values ...float64) (ticks []plot.Tick) {
	for _, v := range values {
		ticks = append(ticks, plot.Tick{Value: v, Label: thousands(v)})
	}
	return ticks
}

// decades are ticks at 1, 2 and 5 of each power of ten.
type decades struct{}

func (decades) Ticks(low, high float64) (ticks []plot.Tick) {
	for power := 0.01; power <= high; power *= 10 {
		for _, v := range []float64{power, 2 * power, 5 * power} {
			if v >= low && v <= high {
				label := strconv.FormatFloat(v, 'g', 1, 64)
				if v >= 1 {
					label = thousands(v)
				}
				ticks = append(ticks, plot.Tick{Value: v, Label: label})
			}
		}
	}
	return ticks
}

var percentiles = []plot.Tick{{Value: 0, Label: "p50"}, {Value: 1, Label: "p90"}, {Value: 2, Label: "p99"}, {Value: 3, Label: "p99.9"}, {Value: 4, Label: "max"}}

func (r *results) putSeries(key string) (xys plotter.XYs) {
	for _, n := range connectionCounts {
		if s, ok := r.of(key, at("put", n, 0), rate); ok && s.median > 0 {
			xys = append(xys, plotter.XY{X: float64(n), Y: s.median})
		}
	}
	return xys
}

func (r *results) percentileSeries(key string, match func(point) bool, of func(point) summary) (xys plotter.XYs) {
	for i, value := range []func(summary) float64{
		func(s summary) float64 { return s.P50 }, func(s summary) float64 { return s.P90 }, func(s summary) float64 { return s.P99 },
		func(s summary) float64 { return s.P999 }, func(s summary) float64 { return s.Max },
	} {
		if s, ok := r.of(key, match, func(p point) float64 { return value(of(p)) }); ok && s.median > 0 {
			xys = append(xys, plotter.XY{X: float64(i), Y: s.median})
		}
	}
	return xys
}

func (r *results) latencySeries(key string) plotter.XYs {
	return r.percentileSeries(key, at("put", manyConnections, 0), func(p point) summary { return p.Latency })
}

func (r *results) latenessSeries(key string) plotter.XYs {
	return r.percentileSeries(key, at("late", consumers, highRate), func(p point) summary { return p.Lateness })
}

func (r *results) memorySeries(key string) (xys plotter.XYs) {
	for _, n := range r.pendingCounts() {
		if s, ok := r.of(key, pending(n), rss); ok && n > 0 {
			xys = append(xys, plotter.XY{X: float64(n), Y: s.median / (1 << 20)})
		}
	}
	return xys
}
