package ui

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSelectedJobsAreMovedAfterAConfirmation(t *testing.T) {
	r := newRig(t)
	r.fill()
	back := "/ui/topic?topic=orders&state=delayed"
	w := r.post(movePath, "id", "o2", "id", "..", "to", "later", "back", back)
	require.Contains(t, mainText(t, parsed(t, w)), "Move 2 jobs to later?")
	w = r.post(movePath, "id", "o2", "id", "..", "to", "later", "back", back, confirmedField, "1")
	require.Equal(t, "/ui/topic?state=delayed&topic=orders", w.Header().Get("Location"), w.Body)
	require.Contains(t, mainText(t, r.open(w.Header().Get("Location"))), "2 jobs moved to later.")
	require.Contains(t, mainText(t, r.open("/ui/topic?topic=later")), "delayed 2")

	require.Contains(t, mainText(t, parsed(t, r.post(movePath, "to", "later", "back", back))), "No job is selected.")
	require.Contains(t, mainText(t, parsed(t, r.post(movePath, "id", "o1", "back", back))), "to is missing")
	w = r.post(movePath, "id", "o1", "id", "gone", "to", "later", "back", back, confirmedField, "1")
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Contains(t, mainText(t, parsed(t, w)), "1 job of 2 moved; then: ")
}
