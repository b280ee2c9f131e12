package ui

import "tarry/auth"

// page is one address of the dashboard.
type page struct {
	path  string // the whole path; what the page is about is in the query
	title string
	nav   string // its name in the navigation; empty: it is not there
	under string // path of the page in the navigation that it belongs to; empty: its own
	// needs is what a person must be allowed to do on some topic, or with the cluster, to be led
	// to the page; with everywhere, on all topics.
	needs      auth.Verbs
	everywhere bool
	// session pages are about signing in. They are there for everybody, also in a dashboard that
	// changes nothing.
	session bool
	// live pages are loaded again every few seconds.
	live bool
	// template is the file of templates/, without .html, that defines "main".
	template string
	// get returns the data of the template. nil: the address takes no GET.
	get func(*request) (any, error)
	// post does an action. Its form has a field "back" with the address of the page that it
	// is on: if the action fails, that page is shown with the error beside the form.
	post func(*request) (*outcome, error)
}

// pages are all pages. Their order is that of the navigation.
var pages = []page{
	{path: Root, title: "Topics", nav: "Topics", needs: auth.Read, template: "topics", live: true, get: showTopics},
	{path: Root + "topic", title: "Topic", under: Root, template: "topic", live: true, get: showTopic},
	{path: settingsPath, title: "Settings", under: Root, template: "settings", get: showSettings},
	{path: settingsPath + "/change", post: changeSettings},
	{path: Root + "topic/pause", post: pauseTopic},
	{path: Root + "topic/resume", post: resumeTopic},
	{path: kickAll.Path, post: sweepTopic(&kickAll)},
	{path: purge.Path, post: sweepTopic(&purge)},
	{path: releaseAll.Path, post: sweepTopic(&releaseAll)},
	{path: moveAll.Path, post: sweepTopic(&moveAll)},
	{path: deleteVerb.Path, post: changeJobs(deleteVerb)},
	{path: kickVerb.Path, post: changeJobs(kickVerb)},
	{path: movePath, post: moveJobs},
	{path: Root + "job", title: "Job", under: Root, template: "job", get: showJob},
	{path: editPath, title: "Edit", under: Root, template: "edit", get: showEdit},
	{path: Root + "job/change", post: changeJob},
	{path: deadPath, title: "Dead", nav: "Dead", needs: auth.Read, everywhere: true, template: "dead", live: true, get: showDead},
	{path: deadTopicsPath, title: "Dead", under: deadPath, template: "deadtopics", live: true, get: showDeadTopics},
	{path: deadPath + "/kick", post: kickDead},
	{path: deadPath + "/purge", post: purgeDead},
	{path: upcomingPath, title: "Upcoming", nav: "Upcoming", needs: auth.Read, template: "upcoming", live: true, get: showUpcoming},
	{path: spreadHerd.Path, post: rescheduleHerd(&spreadHerd)},
	{path: postponeHerd.Path, post: rescheduleHerd(&postponeHerd)},
	{path: inFlightPath, title: "In flight", nav: "In flight", needs: auth.Read, template: "inflight", live: true, get: showInFlight},
	{path: inFlightPath + "/release", post: releaseConsumer},
	{path: schedulesPath, title: "Schedules", nav: "Schedules", needs: auth.Read, template: "schedules", get: showSchedules},
	{path: schedulePath, title: "Schedule", under: schedulesPath, template: "schedule", live: true, get: showSchedule},
	{path: schedulePath + "/run", post: onSchedule("run", "runs now")},
	{path: schedulePath + "/pause", post: onSchedule("pause", "is paused")},
	{path: schedulePath + "/resume", post: onSchedule("resume", "is resumed")},
	{path: schedulePath + "/delete", post: deleteSchedule},
	{path: clusterPath, title: "Cluster", nav: "Cluster", needs: auth.Observe, template: "cluster", live: true, get: showCluster},
	{path: clusterPath + "/verify", post: verifyCluster},
	{path: clusterPath + "/transfer", post: transferLeadership},
	{path: clusterPath + "/remove", post: removeMember},
	{path: clusterPath + "/reset-clock", post: resetClock},
	{path: signInPath, title: "Sign in", template: "signin", session: true, get: showSignIn, post: signIn},
	{path: signOutPath, session: true, post: signOut},
}

func (p *page) allow() string {
	switch {
	case p.get == nil:
		return "POST"
	case p.post == nil:
		return "GET"
	}
	return "GET, POST"
}

// navigation is the entry of a page in the navigation.
type navigation struct {
	Path, Name string
	Current    bool
}

// navigation returns the pages that a person is led to.
func (d *Dashboard) navigation(p *page, who *person) (list []navigation) {
	for _, other := range d.all {
		if other.nav != "" && (who.mayAll(other.needs) || !other.everywhere && who.maySome(other.needs)) {
			list = append(list, navigation{other.path, other.nav, other.path == p.path || other.path == p.under})
		}
	}
	return list
}
