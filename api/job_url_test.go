package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

const jobURL = "https://hooks.example.com/job?key=1"

func TestAJobHasAPushURLInATopicThatPermitsIt(t *testing.T) {
	r := pushRig(t)
	const add = `{"topic":"mail","id":"a","push_url":"` + jobURL + `","body":1}`
	w := r.do("POST", "/v1/jobs", add)
	refused(t, w, 400, job.CodeInvalid, `push_url is not permitted in topic "mail", which has no push`)
	r.settings("PUT", "", `{"push":{"job_urls":true,"secret":"0123456789abcdef"}}`)
	require.Equal(t, map[string]any{"has_secret": true, "job_urls": true}, r.settings("GET", "", "")["settings"].(map[string]any)["push"])
	r.ok("/v1/jobs", add)
	require.Equal(t, true, r.ok("/v1/jobs", add)["existing"])
	require.Equal(t, jobURL, decoded(t, r.do("GET", "/v1/jobs/a", ""))["push_url"], "it is shown in full")
	refused(t, r.do("POST", "/v1/jobs", `{"topic":"mail","body":1}`), 400, job.CodeInvalid, "push_url is missing")
	refused(t, r.do("POST", "/", `{"command":"add","topic":"mail","body":1}`), 400, job.CodeInvalid, "push_url is missing")
	require.Equal(t, "a", r.ok("/", `{"command":"add","topic":"mail","id":"a","push_url":"`+jobURL+`","if_exists":"keep","body":1}`)["id"])
	reserved := r.ok("/v1/reserve", `{"topics":["mail"]}`)["jobs"].([]any)[0].(map[string]any)
	require.Equal(t, jobURL, reserved["push_url"])
}

func TestAPushURLIsCheckedWhereverItIsGiven(t *testing.T) {
	r := pushRig(t)
	r.settings("PUT", "", `{"push":{"job_urls":true,"secret":"0123456789abcdef"}}`)
	r.ok("/v1/jobs", `{"topic":"mail","id":"a","push_url":"`+jobURL+`","body":1}`)
	const bad, says = `"push_url":"http://169.254.169.254/"`, "push_url is not listed"
	refused(t, r.do("POST", "/v1/jobs", `{"topic":"mail","body":1,`+bad+`}`), 400, job.CodeInvalid, says)
	refused(t, r.do("POST", "/v1/jobs", `{"topic":"mail","body":1,"push_url":""}`), 400, job.CodeInvalid, "push_url is empty")
	refused(t, r.do("POST", "/", `{"command":"add","topic":"mail","body":1,`+bad+`}`), 400, job.CodeInvalid, says)
	refused(t, r.do("PATCH", "/v1/jobs/a", `{`+bad+`}`), 400, job.CodeInvalid, says)
	refused(t, r.do("POST", "/v1/jobs/batch", `{"atomic":true,"jobs":[{"topic":"mail","body":1,`+bad+`}]}`), 400, job.CodeInvalid, "jobs[0]: "+says)
	refused(t, r.do("PUT", "/v1/schedules/s", `{"spec":"@every 90s","job":{"topic":"mail","body":1,`+bad+`}}`), 400, job.CodeInvalid, "job."+says)
	refused(t, r.do("PUT", "/v1/schedules/s", `{"spec":"@every 90s","job":{"topic":"mail","body":1}}`), 400, job.CodeInvalid, "job.push_url is missing")
	for path, item := range map[string]string{"/v1/jobs/batch": `{"topic":"mail","body":1,` + bad + `}`, "/v1/update": `{"id":"a",` + bad + `}`} {
		results := decoded(t, r.do("POST", path, `{"jobs":[`+item+`]}`))["results"].([]any)
		require.Equal(t, "jobs[0].push_url", results[0].(map[string]any)["field"], path)
	}
	results := decoded(t, r.do("POST", "/v1/jobs/batch", `{"jobs":[{"topic":"mail","id":"a","push_url":"`+jobURL+`","body":1},{"topic":"mail","body":1}]}`))["results"].([]any)
	require.Equal(t, true, results[0].(map[string]any)["existing"])
	require.Equal(t, "jobs[1].push_url", results[1].(map[string]any)["field"])
	reserved := r.ok("/v1/reserve", `{"topics":["mail"]}`)["jobs"].([]any)[0].(map[string]any)
	w := r.do("POST", "/v1/jobs/a/finish", `{"token":"`+reserved["token"].(string)+`","then":[{"topic":"mail","body":1,`+bad+`}]}`)
	refused(t, w, 400, job.CodeInvalid, "then[0]: "+says)
}

func TestAPushURLIsChangedAndRemoved(t *testing.T) {
	r := pushRig(t)
	r.settings("PUT", "", `{"push":{"url":"https://hooks.example.com/t","job_urls":true,"secret":"0123456789abcdef"}}`)
	r.ok("/v1/jobs", `{"topic":"mail","id":"a","body":1}`)
	require.Equal(t, 200, r.do("PATCH", "/v1/jobs/a", `{"push_url":"`+jobURL+`"}`).Code)
	require.Equal(t, jobURL, decoded(t, r.do("GET", "/v1/jobs/a", ""))["push_url"])
	require.Equal(t, 200, r.do("PATCH", "/v1/jobs/a", `{"push_url":""}`).Code)
	require.NotContains(t, decoded(t, r.do("GET", "/v1/jobs/a", "")), "push_url")
	r.settings("PATCH", "", `{"push":{"url":"https://hooks.example.com/t"}}`)
	refused(t, r.do("PATCH", "/v1/jobs/a", `{"push_url":"`+jobURL+`"}`), 400, job.CodeInvalid, "push_url is not permitted")
}

// The schedule is shown with the URL, so that it can be put elsewhere.
func TestAScheduleOfJobsWithAPushURL(t *testing.T) {
	r := pushRig(t)
	r.settings("PUT", "", `{"push":{"job_urls":true,"secret":"0123456789abcdef"}}`)
	w := r.do("PUT", "/v1/schedules/s", `{"spec":"@every 90s","job":{"topic":"mail","body":1,"push_url":"`+jobURL+`"}}`)
	require.Equal(t, 201, w.Code, w.Body)
	require.Equal(t, jobURL, decoded(t, r.do("GET", "/v1/schedules/s", ""))["job"].(map[string]any)["push_url"])
	id := r.ok("/v1/schedules/s/run", `{}`)["id"].(string)
	require.Equal(t, jobURL, decoded(t, r.do("GET", "/v1/jobs/"+id, ""))["push_url"])
}

// With job_urls anybody who may add jobs chooses the servers that get signed posts.
func TestTheSecretIsNotKeptForURLsOfJobs(t *testing.T) {
	r := pushRig(t)
	const secret = `"secret":"0123456789abcdef"`
	r.settings("PUT", "", `{"push":{"url":"https://hooks.example.com/a",`+secret+`}}`)
	for _, change := range []string{`{"push":{"job_urls":true}}`, `{"push":{"url":"https://hooks.example.com/a","job_urls":true}}`} {
		refused(t, r.do("PATCH", "/v1/topics/mail/settings", change), 400, job.CodeInvalid, "push.secret is missing: push.job_urls")
	}
	r.settings("PATCH", "", `{"push":{"url":"https://hooks.example.com/a","job_urls":true,`+secret+`}}`)
	r.settings("PATCH", "", `{"push":{"job_urls":true,"concurrency":3}}`)
	refused(t, r.do("PATCH", "/v1/topics/mail/settings", `{"push":{"url":"https://hooks.example.com/a"}}`), 400, job.CodeInvalid, "push.secret is missing")
	refused(t, r.do("PATCH", "/v1/topics/mail/settings", `{"push":{"url":""}}`), 400, job.CodeInvalid, "push.url is missing")
	off := newRig(t)
	refused(t, off.do("PUT", "/v1/topics/mail/settings", `{"push":{"job_urls":true,`+secret+`}}`), 400, job.CodeInvalid, "push is off")
	refused(t, off.do("POST", "/v1/jobs", `{"topic":"mail","body":1,"push_url":"`+jobURL+`"}`), 400, job.CodeInvalid, "push is off")
}
