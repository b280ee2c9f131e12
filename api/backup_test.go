package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/job"
)

const backupPath = "/v1/cluster/backup"

func TestTheRateOfABackupHasBounds(t *testing.T) {
	r := newRig(t)
	for _, rate := range []string{"0", "1024", "65535", "1099511627777", "fast"} {
		refused(t, r.do("GET", backupPath+"?rate="+rate, ""), 400, job.CodeInvalid, "from 65536 to 1099511627776")
	}
	for _, rate := range []int64{job.MinBackupRate, job.MaxBackupRate} {
		w := r.do("GET", fmt.Sprint(backupPath, "?rate=", rate), "")
		require.Equal(t, 200, w.Code, w.Body)
		require.Contains(t, w.Body.String(), fmt.Sprint(rate, " bytes a second"))
	}
}

// A page needs no permission to make a browser send a GET, and this one keeps files of the store
// and the only place for a backup.
func TestAForeignPageStartsNoBackup(t *testing.T) {
	r := newRig(t)
	from := func(r *rig, header ...string) *httptest.ResponseRecorder {
		q := httptest.NewRequest("GET", backupPath, nil)
		for i := 0; i < len(header); i += 2 {
			q.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		return w
	}
	const browser = "Mozilla/5.0"
	foreign := [][]string{
		{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"},
		{"Sec-Fetch-Site", "same-site"},
		{"Sec-Fetch-Site", "cross-site", "Origin", app},
		{"Origin", app},
		{"User-Agent", browser}, // over plain HTTP browsers do not say from where an image is asked for
	}
	for _, header := range foreign {
		refused(t, from(r, header...), 403, codeCrossOrigin, "another origin")
		require.Equal(t, 200, from(allowing(t, "*"), header...).Code, "%v", header)
	}
	require.Equal(t, 200, from(r).Code, "a program")
	for _, site := range []string{"same-origin", "none"} {
		require.Equal(t, 200, from(r, "Sec-Fetch-Site", site, "User-Agent", browser).Code, site)
	}
	one := allowing(t, app)
	require.Equal(t, 200, one.fromPage(app, "GET", backupPath, "").Code)
	refused(t, one.fromPage("https://evil.example", "GET", backupPath, ""), 403, codeCrossOrigin, "another origin")
}

// pausedBackups are backups that show the log after their first byte.
type pausedBackups struct {
	apitest.Operator
	log *bytes.Buffer
	at  string
}

func (o *pausedBackups) Backup(_ context.Context, to io.Writer, _ job.BackupOptions) error {
	_, err := io.WriteString(to, "a")
	o.at = o.log.String()
	return err
}

// A backup may take hours; who has the bodies is known from its beginning.
func TestTheCallerOfABackupIsLoggedWhenItBegins(t *testing.T) {
	log := new(bytes.Buffer)
	operator := &pausedBackups{log: log}
	r := newRig(t, func(o *Options) {
		o.Operator, o.Logger = operator, slog.New(slog.NewTextHandler(log, nil))
	})
	require.Equal(t, 200, r.do("GET", backupPath, "").Code)
	require.Regexp(t, `level=INFO msg="management call" call="GET /v1/cluster/backup" from=192.0.2.1:1234 status=200`, operator.at)
	require.Equal(t, operator.at, log.String(), "it is logged once")
}
