// Package ui serves the dashboard of a node below /ui/. Pages are rendered on the server and
// work without JavaScript.
//
// A page gets all it shows from, and does all it can do through, the HTTP API of its node,
// which it calls in the same process (caller.go). So an action passes the API's checks, has
// its errors and its line in the log, and this package has no rules of its own. The types of
// replies are those of package client. Reads ask the leader; while there is none, a page shows
// the state of its node, and says so. The rates of topics are always those of its node.
//
// To add a page:
//
//  1. a row of the table in pages.go: its path, its title and its name in the navigation;
//  2. a file with a function that returns the data of its template (request.read), and for
//     each action one that calls the API (request.do) and returns where to go;
//  3. a template in templates/ that defines "main" and uses the components of
//     templates/shared/components.html; its data is .Data of a view;
//  4. addresses of it in shown, and forms of its actions in acts, in pages_test.go. The tests
//     there go through all pages.
//
// A list of jobs is a jobList (joblist.go) with its columns and actions, which the component
// "jobs" shows with boxes to select, paging and what to do if it is empty.
//
// What a page is about is in its query, not in its path: a name may be "..", and browsers
// change such paths. A form that acts has {{template "token" $}}, and stands inside
// {{if $.Actions}}. An action that cannot be undone returns a confirm unless
// request.confirmed.
//
// Who looks at a page is found out by the API, too (person.go): by a session (signin.go) or by
// what the browser sends. By the rules of their token a page offers only what they may do:
// {{if $.May "manage" .Topic}} in place of {{if $.Actions}}. It need not be right about that,
// because the API decides.
//
// A request goes through ui.go, request.go (the view, actions, errors) and look.go
// (templates and their functions); csrf.go protects actions.
package ui
