package integration

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/sleep"
)

// fillShop adds what a shop may have in its queue: jobs of all states, a paused topic, topics
// with settings, a schedule, and large numbers.
func fillShop(t *testing.T, addr string) {
	t.Helper()
	call := func(method, path string, body object) {
		t.Helper()
		status, answer := request(t, method, addr, path, body)
		require.Less(t, status, 300, "%s %s: %v", method, path, answer)
	}
	call(http.MethodPut, "/v1/topics/orders.capture/settings", object{"retain": 86400, "max_attempts": 5, "description": "Captures payments. Owner: payments team"})
	call(http.MethodPut, "/v1/topics/mail.invoice/settings", object{"rate": 20, "index_headers": []string{"order"}, "description": "Invoices by mail"})
	call(http.MethodPut, "/v1/topics/webhooks.partner/settings", object{"backoff": object{"base": 10, "factor": 2, "max": 3600}})

	orders := []object{}
	for i := range 40 {
		orders = append(orders, object{
			"topic": "orders.capture", "id": fmt.Sprintf("order-%d", 88140+i), "priority": 1024 - 8*(i%3), "headers": object{"tenant": []string{"nordic", "iberia"}[i%2], "trace": fmt.Sprintf("4bf92f3577b34da6a3ce929d0e0e%04x", i)},
			"body": object{"order": 88140 + i, "amount": object{"value": 1990 + 370*i, "currency": "EUR"}, "customer": object{"name": "Ann Lindqvist", "country": "SE"}, "items": []object{{"sku": "TEA-0" + fmt.Sprint(i%10), "count": 1 + i%4}}},
		})
	}
	addAll(t, addr, orders)
	addAll(t, addr, spread("mail.reminder", "reminder", 12_400, 60, 7))
	addAll(t, addr, spread("mail.campaign", "campaign", 4_000, 2.5*3600, 0.01))
	addAll(t, addr, spread("mail.invoice", "invoice", 820, 30, 5))
	addAll(t, addr, spread("mail.welcome", "welcome", 36, 5, 25))
	addAll(t, addr, spread("refunds", "refund", 9, 900, 1800))
	addAll(t, addr, spread("images.resize", "image", 210, 0, 0))
	addAll(t, addr, spread("reports.nightly", "report", 3, 20_000, 3600))
	addAll(t, addr, spread("search.index.products.eu-north-1.catalogue-with-variants-and-translations-v2", "doc", 4, 3, 60))

	for i := range 6 {
		j := reserveBy(t, addr, "images.resize", fmt.Sprintf("resize-%d@web%d", i, 1+i%3))
		require.NotNil(t, j)
	}
	bad := []string{"503 Service Unavailable: maintenance until 06:00", "x509: certificate has expired", "dial tcp 10.2.0.17:443: connect: connection refused"}
	addAll(t, addr, spread("webhooks.partner", "hook", 7, 0, 0))
	for i := range 5 {
		j := reserveBy(t, addr, "webhooks.partner", "hooks@web2")
		call(http.MethodPost, fmt.Sprintf("/v1/jobs/%v/bury", j["id"]), object{"token": j["token"], "reason": bad[i%len(bad)]})
	}
	for range 7 {
		j := reserveBy(t, addr, "orders.capture", "payments-1@web1")
		finish(t, addr, j)
	}
	j := reserveBy(t, addr, "orders.capture", "payments-2@web1")
	call(http.MethodPost, fmt.Sprintf("/v1/jobs/%v/release", j["id"]), object{"token": j["token"], "delay": 40, "reason": "gateway timeout after 30 s"})

	call(http.MethodPost, "/v1/topics/refunds/pause", nil)
	call(http.MethodPut, "/v1/schedules/nightly-report", object{"spec": "30 2 * * *", "zone": "Europe/Stockholm", "job": object{"topic": "reports.nightly", "body": object{"report": "sales"}}})
	call(http.MethodPut, "/v1/schedules/reconcile-payments", object{"spec": "@every 15m", "job": object{"topic": "orders.reconcile", "body": object{}}})
}

// spread returns jobs that are due from a number of seconds on, with so many between them.
func spread(topic, id string, count int, first, every float64) []object {
	jobs := []object{}
	for i := range count {
		jobs = append(jobs, object{
			"topic": topic, "id": fmt.Sprintf("%s-%d", id, 501000+i), "delay": first + every*float64(i),
			"body": object{"to": fmt.Sprintf("customer%d@example.com", 1000+i), "template": id}, "headers": object{"order": fmt.Sprint(88000 + i)},
		})
	}
	return jobs
}

func addAll(t *testing.T, addr string, jobs []object) {
	t.Helper()
	for len(jobs) > 0 {
		n := min(len(jobs), 1000)
		post(t, addr, "/v1/jobs/batch", object{"jobs": jobs[:n]})
		jobs = jobs[n:]
	}
}

func reserveBy(t *testing.T, addr, topic, consumer string) object {
	t.Helper()
	answer := post(t, addr, "/v1/reserve", object{"topics": []string{topic}, "consumer": consumer, "wait": 10, "ttr": 900})
	jobs := answer["jobs"].([]any)
	require.Len(t, jobs, 1, "a job of %s", topic)
	return jobs[0].(object)
}

// runShop adds and finishes jobs for a while, so that the topics have rates.
func runShop(t *testing.T, addr string, d time.Duration) {
	t.Helper()
	for i, end := 0, time.Now().Add(d); time.Now().Before(end); i++ {
		var jobs []object
		for k := range 3 + (i/7)%5 {
			jobs = append(jobs, object{"topic": "images.resize", "id": fmt.Sprintf("upload-%d-%d", i, k), "body": object{"image": i}})
		}
		jobs = append(jobs, object{"topic": "orders.capture", "id": fmt.Sprintf("order-%d", 90000+i), "body": object{"order": 90000 + i, "amount": object{"value": 4990, "currency": "EUR"}}})
		addAll(t, addr, jobs)
		for range 3 + (i/11)%6 {
			if answer := post(t, addr, "/v1/reserve", object{"topics": []string{"images.resize"}, "consumer": "resize-9@web3"}); len(answer["jobs"].([]any)) > 0 {
				finish(t, addr, answer["jobs"].([]any)[0].(object))
			}
		}
		mails := post(t, addr, "/v1/reserve", object{"topics": []string{"mail.invoice", "mail.reminder", "mail.welcome"}, "max": 5, "consumer": "mailer-1@web2"})
		for _, j := range mails["jobs"].([]any) {
			finish(t, addr, j.(object))
		}
		if i%3 > 0 {
			finish(t, addr, reserveBy(t, addr, "orders.capture", "payments-1@web1"))
		}
		sleep.For(t.Context(), 300*time.Millisecond)
	}
}
